"""One job, held turn by turn, becomes one record.

:func:`hold_trial` prepares the workspace and holds the conversation; what it yields is always a
record, whatever went wrong on the way.
"""

from skillup.trial.hold import hold_rest, hold_trial, record_without_turns
from skillup.trial.request import TrialEvent, TrialRequest

__all__ = ["TrialEvent", "TrialRequest", "hold_rest", "hold_trial", "record_without_turns"]
