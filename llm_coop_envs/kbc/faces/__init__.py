"""What other rooms show or learn of the number contest; the descriptor refers to it."""
