"""Institutions around any scenario's act phase: repetition, reputation, mediation and contracts."""
