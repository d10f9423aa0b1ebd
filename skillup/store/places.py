"""Where runs are by default, the directory of a job, and whether a `run.json` can be one."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pydantic import BaseModel

from skillup.store.files import disk_errors

HOME_DIRECTORY = ".skillup"


def new_run_id() -> str:
    """A run's id: the time in UTC, so that runs sort by it, and six hex digits.

    Of these, three are the part of the second, so that quick runs sort, too; three are random.
    """
    return f"{beginning_of_id(datetime.now(UTC))}{secrets.randbelow(4096):03x}"


def beginning_of_id(started: datetime) -> str:
    """The beginning of the ids of runs that were started at this time, which is in UTC."""
    part = started.microsecond * 4096 // 1_000_000
    return f"{started:%Y%m%dT%H%M%SZ}-{part:03x}"


def default_run_path(workspace_root: Path, run_id: str) -> Path:
    """``<root>/.skillup/runs/<run id>``; the run directory itself is not made.

    Makes ``.skillup`` with a ``.gitignore`` in it, so that runs are not committed by accident.
    Raises RunDirectoryError if that cannot be written.
    """
    _home(workspace_root)
    return runs_folder(workspace_root) / run_id


def runs_folder(workspace_root: Path) -> Path:
    """``<root>/.skillup/runs``: the runs without ``--out``; nothing is made."""
    return workspace_root / HOME_DIRECTORY / "runs"


def shared_answers_path(workspace_root: Path) -> Path:
    """``<root>/.skillup/judge-cache``: what models answered to the judges of all its runs.

    As :func:`default_run_path`.
    """
    return _home(workspace_root) / "judge-cache"


def default_index_path(workspace_root: Path, *, make: bool) -> Path:
    """``<root>/.skillup/index.sqlite``: the index of its past runs.

    With `make`, as :func:`default_run_path`; else nothing is made.
    """
    home = _home(workspace_root) if make else workspace_root / HOME_DIRECTORY
    return home / "index.sqlite"


def _home(workspace_root: Path) -> Path:
    home = workspace_root / HOME_DIRECTORY
    ignore = home / ".gitignore"
    with disk_errors("write", ignore):
        home.mkdir(parents=True, exist_ok=True)
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    return home


# Job ids as names of directories, and back.

_LONGEST = 120  # most file systems allow 255 bytes for a name
_CUT = "~"  # stands in no name that was not cut: quoting turns it into %7E
_EMPTY = "%"
RESERVED = ("raw", "files")
"""A trial's own directories (and those set aside, ``raw.attempt-1``); no part of a job id is."""


def directory_of_job(job_id: str) -> str:
    """The relative directory of a job: every part of the id made a safe name.

    Letters, digits, ``-``, ``_`` and ``.`` stay, anything else is percent-encoded; so is a leading
    dot, hence no part is ``.``, ``..`` or hidden. Different ids have different directories (only a
    file system that ignores case can disagree).
    """
    names = []
    for part in job_id.split("/"):
        name = quote(part, safe="", errors="surrogatepass").replace("~", "%7E") or _EMPTY
        if name.startswith(".") or is_reserved(name):
            name = f"%{ord(name[0]):02X}{name[1:]}"
        if len(name) > _LONGEST:
            digest = hashlib.sha256(part.encode(errors="surrogatepass")).hexdigest()[:16]
            name = f"{name[: _LONGEST - len(digest) - 1]}{_CUT}{digest}"
        names.append(name)
    return "/".join(names)


def job_of_directory(directory: str) -> str | None:
    """The job id whose directory this is; None if a part was too long to be kept whole."""
    if _CUT in directory:
        return None
    parts = ("" if part == _EMPTY else part for part in directory.split("/"))
    return "/".join(unquote(part, errors="surrogatepass") for part in parts)


def is_reserved(name: str) -> bool:
    """Whether a directory of this name holds a trial's files, never another trial."""
    return name.partition(".")[0] in RESERVED


class _SuiteShape(BaseModel):
    path: str | None = None
    gates: dict[str, Any] | None = None
    cases: dict[str, Any] | None = None
    titles: dict[str, str | None] | None = None
    tags: dict[str, list[str]] | None = None


class _ProfileShape(BaseModel):
    api_key_env: str | None = None


class _RequestShape(BaseModel):
    directory: str | None = None
    paths: list[Any] | None = None


class RunShape(BaseModel):
    """What must be as it is in ``run.json``, where it is there."""

    run_id: str = ""
    started_at: str = ""
    jobs: list[str] | None = None
    hidden_variables: list[str] | None = None
    case_digests: dict[str, str] | None = None
    profiles: dict[str, _ProfileShape] | None = None
    suites: dict[str, _SuiteShape] | None = None
    references: dict[str, dict[str, str | None]] | None = None
    request: _RequestShape | None = None
