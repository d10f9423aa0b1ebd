"""One adapter for each CLI agent; :mod:`skillup.engines.base` is what they implement.

Kept free of imports: the scripted agent, started for each turn, passes through here.
"""
