"""Who runs the trials of a plan, and how many at once."""

from skillup.executors.local import Stepwise, run_locally
from skillup.executors.run import Run, RunObserver, RunOptions

__all__ = ["Run", "RunObserver", "RunOptions", "Stepwise", "run_locally"]
