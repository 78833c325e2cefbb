"""A common-pool fishery: the example of a scenario that comes from outside the package."""
