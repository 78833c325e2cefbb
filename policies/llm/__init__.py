"""Language models as policies: chat clients, prompt packs, memory, reading of answers, journal of paid answers."""
