"""Views of an environment for other kinds of consumers."""
