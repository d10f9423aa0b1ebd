"""Runs beside each other: the index of past runs, how cases fared, and what differs between two."""
