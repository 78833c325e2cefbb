"""Learning baselines."""
