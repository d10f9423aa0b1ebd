"""`skillup view`: the report's page, served on loopback for a folder of runs, with live updates."""
