"""What is asked for, by its path, and the answer to it: the page, data, or a raw file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote

from skillup.errors import RunDirectoryError, SkillupError
from skillup.reports.page.build import page_html
from skillup.reports.page.run_data import PAGE_VERSION
from skillup.reports.serving.raw_file import (
    NoSuchFileError,
    disposition,
    is_binary,
    open_inside,
)
from skillup.reports.serving.runs import NoSuchRunError, Served
from skillup.store.json_text import no_mask, to_json

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
