"""Figures of recorded runs: plain arrays from events, drawn beside what was published."""
