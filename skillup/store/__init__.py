"""The run directory: an append-only journal, atomic files, and resuming after any crash."""

from skillup.store.files import Mask
from skillup.store.places import default_run_path, new_run_id
from skillup.store.run_directory import RunDirectory
from skillup.store.trials import TrialPlace

__all__ = ["Mask", "RunDirectory", "TrialPlace", "default_run_path", "new_run_id"]
