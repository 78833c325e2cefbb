"""Pages of the documentation that are written from the code and from records."""
