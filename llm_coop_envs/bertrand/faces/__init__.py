"""What other rooms show or learn of price competition; the descriptor refers to it."""
