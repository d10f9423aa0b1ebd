"""The arithmetic of comparing runs, in pure functions; sources are in `docs/statistics.md`."""
