"""Price competition: rules, text, environment and metrics."""
