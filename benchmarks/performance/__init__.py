"""Measurements of speed, as ratios against named alternatives."""
