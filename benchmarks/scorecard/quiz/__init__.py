"""Questions about a scenario's rules with computable right answers, as an environment that the scorecard plays."""
