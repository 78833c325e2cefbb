"""Runs: playing what a study asks for, and what their folders hold."""
