"""What other rooms show, ask and measure of this scenario: plugged in by its descriptor, imported by nobody else."""
