"""Pictures of scenes, windows and replays, with pygame."""
