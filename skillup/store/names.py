"""Job ids as names of directories, and back."""

from __future__ import annotations

import hashlib
from urllib.parse import quote, unquote

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
    return "/".join(_name(part) for part in job_id.split("/"))


def job_of_directory(directory: str) -> str | None:
    """The job id whose directory this is; None if a part was too long to be kept whole."""
    if _CUT in directory:
        return None
    parts = directory.split("/")
    return "/".join(
        "" if part == _EMPTY else unquote(part, errors="surrogatepass") for part in parts
    )


def is_reserved(name: str) -> bool:
    """Whether a directory of this name holds a trial's files, never another trial."""
    return name.partition(".")[0] in RESERVED


def _name(part: str) -> str:
    if not part:
        return _EMPTY
    name = quote(part, safe="", errors="surrogatepass").replace("~", "%7E")
    if name.startswith(".") or is_reserved(name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(part.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{name[: _LONGEST - len(digest) - 1]}{_CUT}{digest}"
