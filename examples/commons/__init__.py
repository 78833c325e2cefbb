"""A pool that doubles every month, and those who take from it, after the rules of GovSim."""
