"""Reports on runs: what was measured, beside what was published."""
