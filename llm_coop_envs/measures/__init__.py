"""Measures beyond outcomes: talk against actions, information use, and detectors tested on synthetic worlds."""
