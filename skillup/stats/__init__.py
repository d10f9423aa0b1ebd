"""The arithmetic of comparing runs: pure functions of counts and scores, without any library.

Every function names its formula and its source; `docs/statistics.md` says when each is used.
"""
