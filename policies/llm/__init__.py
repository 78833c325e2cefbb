"""Language models as policies: chat clients, prompt packs, memory, reading of answers, and the journal of paid answers."""
