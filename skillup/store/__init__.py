"""The run directory: an append-only journal, atomic files, and resuming after any crash.

Everything that other layers need is :class:`RunDirectory` and :func:`default_runs_dir`.
"""

from __future__ import annotations

from skillup.store.json_text import Mask
from skillup.store.names import default_runs_dir
from skillup.store.run_directory import RunDirectory
from skillup.store.trials import TrialPlace

__all__ = ["Mask", "RunDirectory", "TrialPlace", "default_runs_dir"]
