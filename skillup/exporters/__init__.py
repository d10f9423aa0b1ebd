"""Runs in the form of other tools."""
