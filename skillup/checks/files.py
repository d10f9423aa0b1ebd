"""Checks of the workspace as it stood after the turn."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from skillup.checks.context import Subject
from skillup.checks.evidence import around, beginning, listed, quoted
from skillup.checks.finding import CannotEvaluateError, Finding, not_assertable
from skillup.checks.folding import Haystack
from skillup.checks.paths import files_named, found_by, near_misses, path_problem, unseen_by
from skillup.checks.text import Find, searching
from skillup.schema.check_specs import FileContains
from skillup.schema.record import FileState

NO_SNAPSHOT = "the workspace was not looked at after the turn"


def files_exist(spec: Sequence[str], subject: Subject) -> Finding:
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
    return Finding(True, "all are there", listed(dict.fromkeys(found)))


def files_not_exist(spec: Sequence[str], subject: Subject) -> Finding:
    """No path or glob finds anything."""
    files = subject.last.files
    if files is None:
        return not_assertable(NO_SNAPSHOT)
    for pattern in spec:
        _refuse_outside(pattern)
    for pattern in spec:
        hits = found_by(pattern, files)
        if hits:
            return Finding(False, f"{pattern} is there", listed(hits))
    return _unseen(spec, subject) or Finding(True, "none is there", _show(files))


def _unseen(patterns: Sequence[str], subject: Subject) -> Finding | None:
    """That one of them may be where nobody could look."""
    for pattern in patterns:
        place = unseen_by(pattern, subject.last.unseen)
        if place is not None:
            return not_assertable(f"{pattern}: {place} was not looked at")
    return None


def file_contains(spec: Sequence[FileContains], subject: Subject) -> Finding:
    """In each item, some file that the path finds has the content."""
    if subject.last.files is None:
        return not_assertable(NO_SNAPSHOT)
    finding = Finding(False, "there is nothing to look for")
    for wanted in spec:
        finding = _one_file(wanted, subject.last.files, subject)
        if not finding.passed:
            return finding
    return finding


def _one_file(wanted: FileContains, files: Mapping[str, FileState], subject: Subject) -> Finding:
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
            return Finding(True, f"found in {path}", around(text, span))
        last = f"{path}: {beginning(text)}"
    if unread:
        raise CannotEvaluateError(f"the content of {listed(unread)} was not kept in the record")
    if leading_out:
        return not_assertable(f"links that lead to no file of the workspace: {listed(leading_out)}")
    where = next(iter(named)) if len(named) == 1 else f"any of {len(named)} files"
    what = quoted(wanted.content) if wanted.content is not None else f"/{wanted.matches}/"
    return Finding(False, f"{what} is not in {where}", last)


def _looking(wanted: FileContains, content: str, subject: Subject) -> tuple[str, Find]:
    if wanted.matches is not None:
        return searching(content)
    haystack = Haystack(content, case_sensitive=subject.case_sensitive)
    return haystack.text, haystack.find


def followed(path: str, files: Mapping[str, FileState]) -> FileState | None:
    """The file at `path`, symbolic links followed; None if they lead to no file of the snapshot."""
    for _ in range(8):
        state = files.get(path)
        if state is None or state.link is None:
            return state
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), state.link))
    return None


def text_of(state: FileState, subject: Subject) -> str | None:
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
