"""From the paths on the command line to suite files: which `eval.yaml`, and which of its cases."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import UsageError

SUITE_FILE = "eval.yaml"
_NEVER_INSIDE = {".git", ".skillup", ".venv", "node_modules", "__pycache__", "fixtures"}
_YAML = {".yaml", ".yml"}
DATASET_ENDINGS = frozenset({".json", ".jsonl"})


@dataclass(frozen=True, slots=True)
class SuiteRequest:
    """A suite to load; `only` names case files, or folders of them, or is empty for all."""

    path: Path
    only: tuple[Path, ...] = ()


def workspace_root(start: Path) -> Path:
    """The nearest directory upwards that holds `engines/` or `.skillup/`; else `start` itself.

    `cases/` alone is not enough to go by: too many projects have a directory of that name.
    """
    start = start.resolve()
    if start.is_file():
        start = start.parent
    for directory in (start, *start.parents):
        if (directory / "engines").is_dir() and (directory / "cases").is_dir():
            return directory
        if (directory / ".skillup").is_dir():
            return directory
    return start


def suite_root(suite_file: Path) -> Path:
    """What a suite's relative paths start from: its directory, or that of an `evals` directory."""
    directory = suite_file.resolve().parent
    return directory.parent if directory.name == "evals" else directory


def find_suites(paths: Sequence[Path], is_case: IsCase) -> list[SuiteRequest]:
    """The suites that `paths` mean, each once, in that order. Raises UsageError if one has none.

    `is_case` tells a case file from a suite file by its content.
    """
    found: dict[Path, list[Path]] = {}
    whole: set[Path] = set()
    for path in paths:
        for request in _requests(path, is_case):
            key = request.path.resolve()
            found.setdefault(key, []).extend(request.only)
            if not request.only:
                whole.add(key)
    return [
        SuiteRequest(path, () if path in whole else tuple(dict.fromkeys(only)))
        for path, only in found.items()
    ]


class IsCase:
    """Says whether a YAML file is a case rather than a suite, by its top-level keys.

    Also of a file with mistakes in it: they are to be explained as those of a case.
    """

    _KEY = re.compile(rb"(?:\{\s*)?[\"']?([A-Za-z_]+)[\"']?\s*:")
    _OF_A_CASE = frozenset({b"id", b"assertions", b"scripted", b"depends_on", b"expect", b"vars"})
    _OF_A_SUITE = frozenset({b"cases", b"skills", b"engine", b"environment"})

    _OF_A_JUDGE = frozenset({b"rules", b"criteria"})

    def __call__(self, path: Path) -> bool:
        """Cheaply, without parsing: keys that begin a line."""
        keys = self._keys(path)
        if b"input" in keys:
            return True
        return bool(keys & self._OF_A_CASE) and not keys & self._OF_A_SUITE

    def is_judge_script(self, path: Path) -> bool:
        """It is a written-down judge (`scripted:FILE`), which may stand beside the cases."""
        keys = self._keys(path)
        return bool(keys) and keys <= self._OF_A_JUDGE

    def _keys(self, path: Path) -> set[bytes]:
        keys: set[bytes] = set()
        try:
            with path.open("rb") as stream:
                for line in stream:
                    match = self._KEY.match(line)
                    if match is not None:
                        keys.add(match[1])
                        if match[1] == b"input":
                            break
        except OSError:
            return set()
        return keys


def _requests(path: Path, is_case: IsCase) -> Iterator[SuiteRequest]:
    if not path.exists():
        raise UsageError(
            f"{path}: no such file or folder",
            hint="give a suite (eval.yaml), a folder with suites, a skill with evals/, or a case",
        )
    if path.is_file():
        if path.suffix in DATASET_ENDINGS:
            yield SuiteRequest(path)
            return
        if path.suffix not in _YAML:
            hint = "suites and cases end in .yaml, datasets in .json or .jsonl"
            raise UsageError(f"{path}: not a YAML file", hint=hint)
        if path.name != SUITE_FILE and is_case(path):
            yield SuiteRequest(_suite_above(path), (path.resolve(),))
        else:
            yield SuiteRequest(path)
        return
    for direct in (path / SUITE_FILE, path / "evals" / SUITE_FILE):
        if direct.is_file():
            yield SuiteRequest(direct)
            return
    below = list(_suites_below(path))
    if below:
        yield from (SuiteRequest(suite) for suite in below)
        return
    if any(is_case(file) for file in sorted(path.glob("*.y*ml"))):
        yield SuiteRequest(_suite_above(path), (path.resolve(),))
        return
    raise UsageError(
        f"{path}: no {SUITE_FILE} in it or below it",
        hint="write one (`name: …`, and the cases beside it), see docs/writing-cases.md; "
        "a skill's suite is evals/eval.yaml",
    )


def _suites_below(folder: Path) -> Iterator[Path]:
    for directory, names, files in os.walk(folder):
        names[:] = sorted(n for n in names if n not in _NEVER_INSIDE and not n.startswith("."))
        if SUITE_FILE in files:
            yield Path(directory) / SUITE_FILE


def _suite_above(path: Path) -> Path:
    start = path.resolve()
    for directory in start.parents if start.is_file() else (start, *start.parents):
        for candidate in (directory / SUITE_FILE, directory / "evals" / SUITE_FILE):
            if candidate.is_file():
                return candidate
    raise UsageError(
        f"{path}: no {SUITE_FILE} beside it or above it",
        hint="a case belongs to a suite: write an eval.yaml in its folder (`name: …` is enough), "
        "see docs/writing-cases.md",
    )
