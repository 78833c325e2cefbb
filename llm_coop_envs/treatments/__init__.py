"""What a study may change about a game: delivery, noise, information, memory, presence, listeners, a regulator."""
