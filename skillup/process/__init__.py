"""Processes: started here and nowhere else, watched while they run, and none outlives its turn."""
