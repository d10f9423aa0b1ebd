"""One job, run turn by turn, becomes one record, whatever goes wrong on the way."""

from skillup.trial.request import TrialEvent, TrialRequest
from skillup.trial.run import record_without_turns, run_trial

__all__ = ["TrialEvent", "TrialRequest", "record_without_turns", "run_trial"]
