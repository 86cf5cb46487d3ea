"""Arms that hold one object: couplings and prioritised tasks [Milioshin2024]."""
