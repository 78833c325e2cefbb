"""The journal of paid answers: written before they are used, read, repaired, replayed."""
