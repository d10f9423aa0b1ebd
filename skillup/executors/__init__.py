"""Who runs the trials of a plan, and how many at once."""
