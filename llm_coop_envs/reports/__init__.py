"""Reports on runs: pages, figures and data files, comparisons of arms and runs, and published values beside them."""
