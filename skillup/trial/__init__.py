"""One job, held turn by turn, becomes one record.

:func:`run_trial` prepares the workspace and holds the conversation; what it yields is always a
record, whatever went wrong on the way.
"""

from skillup.trial.request import TrialEvent, TrialRequest
from skillup.trial.run import record_without_turns, run_rest, run_trial

__all__ = ["TrialEvent", "TrialRequest", "record_without_turns", "run_rest", "run_trial"]
