"""Where runs, their files and the directories of their jobs are; and who writes a run."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from skillup.errors import RunDirectoryError
from skillup.store.database import NEW_FILE, Database
from skillup.store.files import disk_errors

RUN_FILE = "run.sqlite"
RESULT_FILE = "result.json"
LOCK_FILE = "lock"
HOME_DIRECTORY = ".skillup"


def new_run_id() -> str:
    """A run's id: by it runs sort by time. Of its six hex digits at the end, three are random."""
    return f"{beginning_of_id(datetime.now(UTC))}{secrets.randbelow(4096):03x}"


def beginning_of_id(started: datetime) -> str:
    """How the ids of runs begin that were started at this time, in UTC, to 1/4096 s."""
    part = started.microsecond * 4096 // 1_000_000
    return f"{started:%Y%m%dT%H%M%SZ}-{part:03x}"


def default_run_path(workspace_root: Path, run_id: str) -> Path:
    """``<root>/.skillup/runs/<run id>``, which is not made. As :func:`home_directory`."""
    home_directory(workspace_root)
    return runs_folder(workspace_root) / run_id


def runs_folder(workspace_root: Path) -> Path:
    """``<root>/.skillup/runs``: the runs without ``--out``; nothing is made."""
    return workspace_root / HOME_DIRECTORY / "runs"


def home_directory(workspace_root: Path) -> Path:
    """``<root>/.skillup``, made with a ``.gitignore`` in it, so that nothing there is committed by
    accident: runs, their index, stored answers, schemas. Raises RunDirectoryError.
    """
    home = workspace_root / HOME_DIRECTORY
    ignore = home / ".gitignore"
    with disk_errors("write", ignore):
        home.mkdir(parents=True, exist_ok=True)
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    return home


# Job ids as names of directories.

_LONGEST = 120  # most file systems allow 255 bytes for a name
_RESERVED = ("raw", "files")
"""A trial's own directories (and those set aside, ``raw.attempt-1``); no part of a job id is."""


def directory_of_job(job_id: str) -> str:
    """The relative directory of a job: every part of the id percent-encoded, also a leading dot.

    Different ids have different directories (only a file system that ignores case can disagree).
    """
    names = []
    for part in job_id.split("/"):
        # A tilde stands only in names that are cut.
        name = quote(part, safe="", errors="surrogatepass").replace("~", "%7E") or "%"
        if name.startswith(".") or name.partition(".")[0] in _RESERVED:
            name = f"%{ord(name[0]):02X}{name[1:]}"
        if len(name) > _LONGEST:
            digest = hashlib.sha256(part.encode(errors="surrogatepass")).hexdigest()[:16]
            name = f"{name[: _LONGEST - len(digest) - 1]}~{digest}"
        names.append(name)
    return "/".join(names)


# The runs in a folder, and who writes one.

_TIME_AS_NAME = re.compile(r"\d{8}T\d{6}Z-")


def is_run(path: Path) -> bool:
    """Whether it is a run directory; not if nobody here may look."""
    with suppress(OSError):
        return (path / RUN_FILE).is_file()
    return False


def runs_in(folder: Path) -> list[str]:
    """Names of the run directories in `folder`, the newest last; of unknown start come first."""

    def began(path: Path) -> str:
        if _TIME_AS_NAME.match(path.name):
            return path.name
        with (
            suppress(RunDirectoryError, ValueError, AttributeError),
            closing(Database(path / RUN_FILE)) as file,
        ):
            started = file.value("SELECT json FROM run WHERE name = 'started_at'")
            return beginning_of_id(datetime.fromisoformat(started.decode()))
        return ""

    found: list[Path] = []
    with suppress(OSError):
        found += [path for path in folder.iterdir() if is_run(path)]
    return [path.name for path in sorted(found, key=lambda path: (began(path), path.name))]


def is_being_written(run: Path) -> bool:
    """Whether a process has locked the run directory, as :func:`take_lock` does."""
    with suppress(OSError), (run / LOCK_FILE).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def check_free(path: Path) -> None:
    """Raises RunDirectoryError if anything is there but what a killed `create` may leave.

    In the next moment there may be something.
    """
    with disk_errors("read", path):
        names = {entry.name for entry in path.iterdir()} if path.exists() else set()
    if RUN_FILE in names:
        hint = f"go on with it by --resume {path}, or choose another --out"
        raise RunDirectoryError(f"{path} holds a run already", hint=hint)
    if names - {LOCK_FILE, NEW_FILE}:
        hint = "choose a new or empty directory with --out"
        raise RunDirectoryError(f"{path} is not empty", hint=hint)


def take_lock(path: Path) -> int:
    """An exclusive lock on a file, until the descriptor is closed or the process has ended.

    The file stays; to remove it would let two processes lock two files of the same name. Raises
    RunDirectoryError, naming its owner, if another one has it.
    """
    with disk_errors("lock", path):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    for wait in (*[0.01] * 20, 0.0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except (BlockingIOError, PermissionError):
            if wait:
                time.sleep(wait)  # who looks whether it is locked has it for a moment
                continue
            pid = os.pread(file, 32, 0).decode(errors="replace").strip()
            os.close(file)
            owner = f"process {pid}" if pid else "another process"
            hint = f"wait until {owner} has ended, or stop it, then try again"
            what = f"{path.parent} is being written by {owner}"
            raise RunDirectoryError(what, hint=hint) from None
        except OSError as error:
            os.close(file)
            hint = "this file system has no locks: choose a local directory with --out"
            raise RunDirectoryError(f"cannot lock {path}: {error.strerror}", hint=hint) from error
    with disk_errors("write", path):
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    return file
