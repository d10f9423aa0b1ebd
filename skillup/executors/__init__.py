"""Who holds the trials of a plan, and how many at once."""

from skillup.executors.local import run_locally
from skillup.executors.options import RunObserver, RunOptions

__all__ = ["RunObserver", "RunOptions", "run_locally"]
