"""The published experiments again: archives, variants, runs and their comparison."""
