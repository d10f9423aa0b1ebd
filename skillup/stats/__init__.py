"""The arithmetic of comparing runs: pure functions of counts and scores, without any library.

Every function names its formula and where it comes from; `docs/nightly.md` says when each is used.
"""
