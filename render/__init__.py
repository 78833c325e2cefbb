"""Drawing scenes, figures and films from plain data."""
