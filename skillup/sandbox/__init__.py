"""A box around all that runs for a trial: no more of the machine than it needs."""
