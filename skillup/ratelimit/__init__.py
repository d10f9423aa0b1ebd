"""Refusals of a provider hold back everybody who asks it."""
