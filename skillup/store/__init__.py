"""A run on disk: one SQLite file, what leads to it, and resuming after any crash."""

from skillup.store.files import Mask
from skillup.store.places import default_run_path, new_run_id
from skillup.store.run_directory import RunDirectory, TrialPlace
from skillup.store.stored_run import StoredTrial

__all__ = ["Mask", "RunDirectory", "StoredTrial", "TrialPlace", "default_run_path", "new_run_id"]
