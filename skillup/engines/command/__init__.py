"""Engines described in YAML: the language is `skillup/schema/engine.py`."""
