"""What the three scenarios share."""
