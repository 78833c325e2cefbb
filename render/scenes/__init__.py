"""Scenes: what a picture shows, as plain data, and how it follows from events."""
