"""Drawing: scenes, figures and pages, from plain data."""
