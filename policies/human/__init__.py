"""A person as a policy: asked like any other, in a terminal or a window, and recorded in the same way."""
