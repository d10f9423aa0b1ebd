"""Scripts as judges: found, run in a copy of the workspace, and what they print understood."""

from skillup.judges.script.run import judge_by_script

__all__ = ["judge_by_script"]
