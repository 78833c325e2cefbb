"""What was played, in the forms that other tools read."""
