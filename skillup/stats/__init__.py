"""The arithmetic of comparing runs: pure functions of counts and scores, without any library.

`docs/statistics.md` has the source of every formula, and says when each is used.
"""
