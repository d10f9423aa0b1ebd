"""What is asked for, by its path, and the answer to it: the page, data, or a raw file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, quote, unquote, unquote_to_bytes

from skillup.errors import RunDirectoryError, SkillupError
from skillup.reports.html.build import page_html
from skillup.reports.html.run_data import PAGE_VERSION
from skillup.reports.server.runs import NoSuchRunError, Served
from skillup.store.journal import no_mask, to_json

# Files of a run directory by their path in a URL; nothing outside of it, whatever is asked for.

_BINARY_WITHIN = 8192


class NoSuchFileError(Exception):
    """There is nothing to serve under this path; why is nobody's business."""


def open_inside(root: Path, encoded: str) -> tuple[BinaryIO, int, str]:
    """The regular file `encoded` (a path as it stands in a URL) below `root`: file, size, name.

    It is decoded once. Links are followed only where they lead to what is below `root`. Raises
    NoSuchFileError for everything else: directories, pipes, ways out, odd names.
    """
    parts = [os.fsdecode(unquote_to_bytes(part)) for part in encoded.split("/")]
    if not all(map(_is_name, parts)):
        raise NoSuchFileError
    try:
        top = root.resolve(strict=True)
        path = top.joinpath(*parts).resolve(strict=True)
        if top not in path.parents:
            raise NoSuchFileError
        # Neither waits for a pipe's writer, nor follows a link that has been put there since.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, RuntimeError, ValueError):
        raise NoSuchFileError from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NoSuchFileError
    return os.fdopen(descriptor, "rb"), status.st_size, parts[-1]


def _is_name(part: str) -> bool:
    """Whether it is one name in a directory: no step up, no second separator, no odd control."""
    return part not in ("", ".", "..") and not any(c in "/\\" or ord(c) < 32 for c in part)


def is_binary(file: BinaryIO) -> bool:
    """Whether its beginning is no text; the file stands at its start again."""
    head = file.read(_BINARY_WITHIN)
    file.seek(0)
    return b"\0" in head


def disposition(name: str, *, attachment: bool) -> str:
    """The Content-Disposition for a file of this name, whatever is in the name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._- ") else "_" for c in name)
    kind = "attachment" if attachment else "inline"
    encoded = quote(os.fsencode(name), safe="")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}"


_LARGEST_SHOWN = 20_000_000
"""Bytes of a text that a browser is made to show; a larger one is saved."""
_RUN = r"api/runs/(?P<run>[^/]+)"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; of a file, where it is read from."""

    status: int
    kind: str
    body: bytes | BinaryIO
    length: int
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """An answer that never ends: says when `stamp` gives something else."""

    stamp: Callable[[], object]


class Answers:
    """The answers of one server. Nothing that is asked makes it raise."""

    def __init__(self, served: Served, first: str | None) -> None:
        """`first`: the run to show at once; None: the list."""
        self._served = served
        self._first = first

    def of(self, path: str, query: str) -> Answer | Changes:
        """The answer for the `path` after the secret, such as ``api/runs``."""
        try:
            return self._found(path, parse_qs(query))
        except (NoSuchFileError, NoSuchRunError):
            return error_answer(404, "there is nothing here")
        except RunDirectoryError as error:
            return error_answer(409, error.message, error.hint)
        except SkillupError as error:
            return error_answer(404, error.message, error.hint)
        except Exception as defect:  # noqa: BLE001 - told to the page; the server goes on
            return error_answer(500, f"it cannot be shown: {type(defect).__name__}: {defect}")

    def _found(self, path: str, query: dict[str, list[str]]) -> Answer | Changes:
        served = self._served
        if path == "":
            return self._page()
        if path == "api/runs":
            return _json(served.listing())
        if path == "api/events":
            return Changes(served.folder_stamp)
        match = re.fullmatch(rf"{_RUN}/(?P<rest>.+)", path, re.DOTALL)
        if match is None:
            raise NoSuchFileError
        run, rest = unquote(match["run"], errors="surrogateescape"), match["rest"]
        against = next(iter(query.get("against", [])), None)
        if rest == "index.json":
            return _json(served.index(run, against))
        if rest == "events":
            served.stamp(run)
            return Changes(lambda: served.stamp(run))
        if rest.startswith("files/"):
            return _file(*open_inside(served.path(run), rest.removeprefix("files/")))
        trial = re.fullmatch(r"trials/([0-9]{1,9})\.json", rest)
        if trial is None:
            raise NoSuchFileError
        return _json(served.detail(run, int(trial[1]), against))

    def _page(self) -> Answer:
        index = {
            "schema": PAGE_VERSION,
            "mode": "view",
            "folder": str(self._served.folder),
            "open": self._first,
        }
        body = page_html(index, [], title="skillup")
        return Answer(200, "text/html; charset=utf-8", body, len(body))


def error_answer(
    status: int, message: str, hint: str | None = None, *, allow: str | None = None
) -> Answer:
    """``{error, hint}``; `allow`: the methods that are answered."""
    answer = _json({"error": message, "hint": hint}, status)
    return answer if allow is None else replace(answer, headers=(("Allow", allow),))


def _json(value: dict[str, Any], status: int = 200) -> Answer:
    body = to_json(value, no_mask, indent=None)
    return Answer(status, "application/json; charset=utf-8", body, len(body))


def _file(file: BinaryIO, size: int, name: str) -> Answer:
    """A raw file: always as plain text, whatever its name says it is."""
    binary = is_binary(file)
    kind = "application/octet-stream" if binary else "text/plain; charset=utf-8"
    attached = disposition(name, attachment=binary or size > _LARGEST_SHOWN)
    return Answer(200, kind, file, size, (("Content-Disposition", attached),))
