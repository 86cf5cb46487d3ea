"""Control: laws, one file each, and the references they follow."""
