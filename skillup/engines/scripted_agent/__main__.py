"""Starts the agent, as a module or by path: with ``python -I -S`` that is faster."""

import sys

if not __package__:
    # Isolated mode leaves only the standard library; what lies there keeps precedence.
    sys.path.append(__file__.rsplit("/", 4)[0])

from skillup.engines.scripted_agent.agent import main

if __name__ == "__main__":
    sys.exit(main())
