"""The commands of `llm-coop`, one file each."""
