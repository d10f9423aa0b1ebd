"""skillup: does this agent skill still work?

Holds real multi-turn conversations with real CLI agents, records them, and judges the record.
"""

__version__ = "0.1.0"
