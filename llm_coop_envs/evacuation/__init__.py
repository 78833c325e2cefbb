"""Emergency evacuation: rules, text, environment and metrics."""
