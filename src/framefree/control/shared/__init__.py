"""What laws share: their model, allocation, gains, errors of joints and frames, factors."""
