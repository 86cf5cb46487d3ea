"""Running machines in time: integrators, plants, runs and their records."""
