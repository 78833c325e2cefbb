"""The scorecard: a versioned suite of tasks, what a player comes to in it, and with which certainty."""
