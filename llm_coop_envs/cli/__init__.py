"""The command `llm-coop`, one file for each of its commands."""
