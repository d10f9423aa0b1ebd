"""Grades made visible: on the console, and in files."""
