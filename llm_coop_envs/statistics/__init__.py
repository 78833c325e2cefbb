"""Statistics that studies, reports and the scorecard share: intervals, tests, corrections, power."""
