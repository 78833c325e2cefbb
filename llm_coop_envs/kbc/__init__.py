"""The beauty contest: rules, text, environment and metrics."""
