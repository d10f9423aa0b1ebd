"""Which revision of a repository a session began at, where its file tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skillup.engines.session_lines import lines_of
from skillup.engines.transcript import as_dict, as_text

_HEAD_BYTES = 1 << 20


def revision_of(path: Path) -> str | None:
    """``branch main, commit 3f2a…``; None if the beginning of the file has neither.

    Codex writes a `git` object into its first row, Claude Code a `gitBranch` into every one.
    """
    for line in lines_of(path, _HEAD_BYTES):
        if isinstance(line.row, dict):
            told = _told(line.row)
            if told is not None:
                return told
    return None


def _told(row: dict[str, Any]) -> str | None:
    git = as_dict(as_dict(row.get("payload")).get("git") or row.get("git"))
    branch = as_text(row.get("gitBranch")) or as_text(git.get("branch"))
    commit = as_text(git.get("commit_hash"))
    parts = [f"branch {branch}"] if branch else []
    parts += [f"commit {commit}"] if commit else []
    return " ".join(", ".join(parts).split()) or None
