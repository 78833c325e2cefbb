"""Language models as policies: chat clients, prompts, memory, parsing of answers, the journal of paid answers."""
