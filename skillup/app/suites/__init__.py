"""Suites that skillup writes."""
