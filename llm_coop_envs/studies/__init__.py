"""Study files: conditions, seeds, and who plays."""
