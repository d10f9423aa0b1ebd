"""Who runs the trials of a plan, and how many at once."""

from skillup.executors.local import Stepwise, run_locally
from skillup.executors.options import RunObserver, RunOptions

__all__ = ["RunObserver", "RunOptions", "Stepwise", "run_locally"]
