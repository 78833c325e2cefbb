"""What is measured beyond outcomes: what was said against what was done, and detectors against planted truth."""
