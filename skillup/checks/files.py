"""Checks of the workspace as it stood after the turn."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    around,
    beginning,
    listed,
    not_assertable,
    original_span,
    plain,
    quoted,
)
from skillup.checks.text import Find, TextSearch, searching
from skillup.schema.check_specs import FileContains, GoldenFile
from skillup.schema.grade import EvidenceSpan
from skillup.schema.patterns import outside_problem
from skillup.schema.record import FileState
from skillup.workspace.globs import matches_glob, may_match_below

# Paths and globs as checks write them, and the files of a snapshot that they find.

State = TypeVar("State")

_WILD = frozenset("*?[{")


@lru_cache(maxsize=1024)
def path_problem(pattern: str) -> str | None:
    """Why `pattern` cannot name a file of the workspace; None if it can."""
    problem = outside_problem(pattern)
    if problem is not None:
        return problem
    try:
        matches_glob("", normal_path(pattern))
    except re.error as trouble:
        return f"{pattern} is not a valid glob: {trouble}"
    return None


@lru_cache(maxsize=1024)
def normal_path(pattern: str) -> str:
    """With forward slashes, without ``./`` and double slashes."""
    parts = pattern.replace("\\", "/").split("/")
    directory = "/" if len(parts) > 1 and not parts[-1] else ""
    return "/".join(part for part in parts if part not in ("", ".")) + directory


def found_by(pattern: str, files: Mapping[str, object]) -> list[str]:
    """Files that a path or glob finds; a directory is found by way of the files in it."""
    path = normal_path(pattern)
    bare = path.rstrip("/")
    if path in files:
        return [path]
    if not bare:
        return list(files)
    below = bare + "/"
    inside = [name for name in files if name.startswith(below)]
    if inside or not _WILD.intersection(bare):
        return inside
    known: dict[str, bool] = {"": False}

    def within(directory: str) -> bool:
        if directory not in known:
            known[directory] = matches_glob(directory, bare) or within(_parent(directory))
        return known[directory]

    also_files = not path.endswith("/")
    return [
        name for name in files if within(_parent(name)) or (also_files and matches_glob(name, bare))
    ]


def files_named(pattern: str, files: Mapping[str, State]) -> dict[str, State]:
    """Files whose own path is, or matches, the pattern; directories do not count."""
    path = normal_path(pattern)
    if path in files:
        return {path: files[path]}
    return {name: state for name, state in files.items() if matches_glob(name, path)}


def unseen_by(pattern: str, unseen: Sequence[str]) -> str | None:
    """What of the workspace was not looked at, and might be what the pattern means; None: nothing.

    `unseen` is as in a turn's record; what is in `.git` is never looked at.
    """
    path = normal_path(pattern).rstrip("/")
    if ".git" in path.split("/"):
        return ".git"
    for place in unseen:
        inside = place.rstrip("/")
        if path == inside or may_match_below(inside, path):
            return place
    return None


def near_misses(pattern: str, files: Sequence[str]) -> list[str]:
    """Up to three paths that look like the one that was not found."""
    import difflib

    wanted = normal_path(pattern)
    name = wanted.rpartition("/")[2].casefold()
    same_name = [path for path in files if path.rpartition("/")[2].casefold() == name]
    return same_name[:3] or difflib.get_close_matches(wanted, files[:500], n=3, cutoff=0.6)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


NO_SNAPSHOT = "the workspace was not looked at after the turn"


def files_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """Each path or glob finds something."""
    files = subject.last.files
    if files is None:
        return not_assertable(NO_SNAPSHOT)
    missing: list[str] = []
    found: list[str] = []
    for pattern in spec:
        _refuse_outside(pattern)
        all_hits = found_by(pattern, files)
        hits = [path for path in all_hits if not files[path].dangling]
        found.extend(hits[:10])
        if all_hits and not hits:
            return Finding(False, f"a link that leads nowhere: {listed(all_hits)}")
        if not hits:
            missing.append(pattern)
    if missing:
        unseen = _unseen(missing, subject)
        return unseen or Finding(
            False, f"not there: {listed(missing)}", _instead(missing[0], files)
        )
    found = list(dict.fromkeys(found))
    return Finding(True, "all are there", listed(found), spans=_in_files(subject, found))


def _in_files(subject: CheckSubject, paths: Sequence[str]) -> tuple[EvidenceSpan, ...]:
    return tuple(subject.span(subject.last, "file", path=path) for path in paths[:10])


def files_not_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """No path or glob finds anything."""
    files = subject.last.files
    if files is None:
        return not_assertable(NO_SNAPSHOT)
    for pattern in spec:
        _refuse_outside(pattern)
    for pattern in spec:
        hits = found_by(pattern, files)
        if hits:
            return Finding(
                False, f"{pattern} is there", listed(hits), spans=_in_files(subject, hits)
            )
    return _unseen(spec, subject) or Finding(True, "none is there", _show(files))


def _unseen(patterns: Sequence[str], subject: CheckSubject) -> Finding | None:
    """That one of them may be where nobody could look."""
    for pattern in patterns:
        place = unseen_by(pattern, subject.last.unseen)
        if place is not None:
            return not_assertable(f"{pattern}: {place} was not looked at")
    return None


def file_contains(spec: Sequence[FileContains], subject: CheckSubject) -> Finding:
    """In each item, some file that the path finds has the content."""
    if subject.last.files is None:
        return not_assertable(NO_SNAPSHOT)
    finding = Finding(False, "there is nothing to look for")
    for wanted in spec:
        finding = _one_file(wanted, subject.last.files, subject)
        if not finding.passed:
            return finding
    return finding


def _one_file(
    wanted: FileContains, files: Mapping[str, FileState], subject: CheckSubject
) -> Finding:
    _refuse_outside(wanted.path)
    named = files_named(wanted.path, files)
    if not named:
        unseen = _unseen([wanted.path], subject)
        if unseen is not None:
            return unseen
        return Finding(False, f"{wanted.path} is not there", _instead(wanted.path, files))
    unread: list[str] = []
    leading_out: list[str] = []
    last = ""
    for path in named:
        state = followed(path, files)
        if state is None:
            leading_out.append(path)
            continue
        content = text_of(state, subject)
        if content is None:
            unread.append(path)
            continue
        text, find = _looking(wanted, content, subject)
        span = find(wanted.content if wanted.content is not None else wanted.matches or "")
        if span is not None:
            start, end = original_span(content, span)
            place = subject.span(subject.last, "file", path=path, start=start, end=end)
            return Finding(True, f"found in {path}", around(text, span), spans=(place,))
        last = f"{path}: {beginning(text)}"
    if unread:
        raise CannotEvaluateError(f"the content of {listed(unread)} was not kept in the record")
    if leading_out:
        return not_assertable(f"links that lead to no file of the workspace: {listed(leading_out)}")
    where = next(iter(named)) if len(named) == 1 else f"any of {len(named)} files"
    what = quoted(wanted.content) if wanted.content is not None else f"/{wanted.matches}/"
    return Finding(False, f"{what} is not in {where}", last)


def _looking(wanted: FileContains, content: str, subject: CheckSubject) -> tuple[str, Find]:
    if wanted.matches is not None:
        return searching(content)
    haystack = TextSearch(content, case_sensitive=subject.case_sensitive)
    return haystack.text, haystack.find


def followed(path: str, files: Mapping[str, FileState]) -> FileState | None:
    """The file at `path`, symbolic links followed; None if they lead to no file of the snapshot."""
    for _ in range(8):
        state = files.get(path)
        if state is None or state.link is None:
            return state
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), state.link))
    return None


def text_of(state: FileState, subject: CheckSubject) -> str | None:
    """The file as text, whatever its bytes; None: they were not kept."""
    content = None if state.sha256 is None else subject.read_file(state)
    return None if content is None else content.decode("utf-8-sig", errors="replace")


def _refuse_outside(pattern: str) -> None:
    problem = path_problem(pattern)
    if problem is not None:
        raise CannotEvaluateError(problem)


def _instead(pattern: str, files: Mapping[str, FileState]) -> str:
    near = near_misses(pattern, list(files))
    return f"near misses: {listed(near)}" if near else _show(files)


def _show(files: Mapping[str, FileState]) -> str:
    return f"the workspace has: {listed(files, nothing='no files')}"


# The check that compares with a reference file of the suite.

_DIFF_LINES = 12


def golden_file(spec: GoldenFile, subject: CheckSubject) -> Finding:
    """The answer, or a workspace file, is the reference; white space at line ends is ignored."""
    reference = subject.record.references.get(spec.path)
    if reference is None:
        return not_assertable(f"the reference {spec.path} was not found when the case ran")
    stored = text_of(reference, subject)
    if stored is None:
        raise CannotEvaluateError(f"the content of {spec.path} was not kept in the record")
    actual, name = subject.answer, "answer"
    if spec.file is not None:
        problem = path_problem(spec.file)
        if problem is not None:
            raise CannotEvaluateError(problem)
        files = subject.last.files
        if files is None:
            return not_assertable(NO_SNAPSHOT)
        name = normal_path(spec.file)
        state = followed(name, files)
        if state is None:
            return Finding(False, f"{name} is not there")
        content = text_of(state, subject)
        if content is None:
            raise CannotEvaluateError(f"the content of {name} was not kept in the record")
        actual = content
    wanted, lines = _lines(stored), _lines(actual)
    same = wanted == lines
    difference = "" if same else _difference(wanted, lines, spec.path, name)
    found = difference or f"the {name} is the same as {spec.path}"
    spans = () if spec.file is None else _in_files(subject, [name])
    return Finding(same, found, beginning(actual), spans=spans)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in plain(text).strip().split("\n")]


def _difference(wanted: list[str], actual: list[str], from_name: str, to_name: str) -> str:
    # difflib's cost grows with the square of the length: beyond this a diff is no help anyway.
    if max(len(wanted), len(actual)) > 2000:
        at = next(
            (i for i, (a, b) in enumerate(zip(wanted, actual, strict=False)) if a != b),
            min(len(wanted), len(actual)),
        )
        return f"differs from line {at + 1} on"
    diff = list(difflib.unified_diff(wanted, actual, from_name, to_name, lineterm="", n=1))
    shown = [line[:200] for line in diff[:_DIFF_LINES]]
    if len(diff) > _DIFF_LINES:
        shown.append(f"… {len(diff) - _DIFF_LINES} more lines")
    return "\n".join(shown)
