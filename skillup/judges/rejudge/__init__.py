"""Judging again: old records, the same or edited cases, and what that changes."""
