"""What other rooms show or learn of the evacuation; the descriptor refers to it."""
