"""A language model in a seat: prompts, memory, reading of its answers."""
