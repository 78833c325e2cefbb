"""What learned strategies do and are worth."""
