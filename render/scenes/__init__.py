"""Scenes: the content of a picture as plain data, made from events."""
