"""Published numbers of the three scenarios, as data with their sources."""
