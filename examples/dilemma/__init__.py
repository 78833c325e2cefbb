"""Social dilemmas, once or repeated: matrix games, public goods and the traveller's dilemma, from settings."""
