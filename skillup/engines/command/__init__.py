"""Engines described in YAML: the language is `skillup/schema/profile.py`."""
