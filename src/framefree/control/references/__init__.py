"""References: what a law is to follow, as functions of time, one file each."""
