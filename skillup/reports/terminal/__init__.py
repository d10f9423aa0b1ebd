"""Runs and comparisons for people at a terminal."""
