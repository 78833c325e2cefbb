"""People as policies: asked in a terminal or a window, and recorded like any other policy."""
