"""Scenes on a screen: pictures, windows and replays, with pygame."""
