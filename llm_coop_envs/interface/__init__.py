"""What passes between an environment and its players: spaces, actions, questions, slots, wordings, stages."""
