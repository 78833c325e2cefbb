"""A language model in a seat: prompts, memory, and the reading of its answers."""
