"""What other rooms show of price competition, each loaded by its reference in the scenario's descriptor."""
