"""Charts for reports and papers, with matplotlib."""
