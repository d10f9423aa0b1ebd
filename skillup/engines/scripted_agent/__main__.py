"""Starts the agent, as a module or by path.

By path with ``python -I -S`` is faster, and nothing in the user's site-packages can break it.
"""

import sys

if not __package__:
    # Isolated mode leaves only the standard library; what lies there keeps precedence.
    sys.path.append(__file__.rsplit("/", 4)[0])

from skillup.engines.scripted_agent.program import main

if __name__ == "__main__":
    sys.exit(main())
