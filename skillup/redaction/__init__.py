"""Secrets stay out of everything that is written: masked where text comes in."""
