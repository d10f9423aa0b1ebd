"""Checks of the workspace as it stood after the turn."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

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
from skillup.checks.text import TextSearch, searching
from skillup.schema.check_specs import FileContains, GoldenFile
from skillup.schema.grade import EvidenceSpan
from skillup.schema.patterns import outside_problem
from skillup.schema.record import FileState
from skillup.workspace.globs import matches_glob, may_match_below

_WILD = frozenset("*?[{")
NO_SNAPSHOT = "the workspace was not looked at after the turn"
Files = Mapping[str, FileState]


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


def _snapshot(subject: CheckSubject, patterns: Sequence[str]) -> Files | None:
    """The files after the last turn. Raises CannotEvaluateError for a path that leads outside."""
    if subject.last.files is not None:
        for pattern in patterns:
            problem = path_problem(pattern)
            if problem is not None:
                raise CannotEvaluateError(problem)
    return subject.last.files


def _found_by(pattern: str, files: Collection[str]) -> list[str]:
    """Files that a path or glob finds; a directory is found by way of the files in it."""
    path = normal_path(pattern)
    bare = path.rstrip("/")
    if path in files:
        return [path]
    if not bare:
        return list(files)
    inside = [name for name in files if name.startswith(bare + "/")]
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


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _unseen(patterns: Sequence[str], subject: CheckSubject) -> Finding | None:
    """That one of them may be where the workspace was not looked at, such as in `.git`."""
    for pattern in patterns:
        path = normal_path(pattern).rstrip("/")
        places = [".git"] if ".git" in path.split("/") else subject.last.unseen
        for place in places:
            inside = place.rstrip("/")
            if place == ".git" or path == inside or may_match_below(inside, path):
                return not_assertable(f"{pattern}: {place} was not looked at")
    return None


def _instead(pattern: str, files: Files) -> str:
    """Up to three paths that look like the one that was not found; else what is there."""
    wanted = normal_path(pattern)
    name = wanted.rpartition("/")[2].casefold()
    near = [path for path in files if path.rpartition("/")[2].casefold() == name][:3]
    near = near or difflib.get_close_matches(wanted, list(files)[:500], n=3, cutoff=0.6)
    return f"near misses: {listed(near)}" if near else _show(files)


def _show(files: Files) -> str:
    return f"the workspace has: {listed(files, nothing='no files')}"


def _in_files(subject: CheckSubject, paths: Sequence[str]) -> tuple[EvidenceSpan, ...]:
    return tuple(subject.span(subject.last, "file", path=path) for path in paths[:10])


def _deleted(subject: CheckSubject, patterns: Sequence[str]) -> tuple[EvidenceSpan, ...]:
    """Files of these names that a turn up to the last one deleted."""
    turns = [t for t in subject.record.turns if t.turn_number <= subject.last.turn_number]
    steps = [*(step for turn in turns for step in turn.executed()), subject.last]
    changes = [step.changes for step in steps if step.changes is not None]
    gone = dict.fromkeys(path for one in changes for path in one.deleted)
    paths = [path for pattern in patterns for path in _found_by(pattern, gone)]
    return _in_files(subject, list(dict.fromkeys(paths)))


def files_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """Each path or glob finds something."""
    files = _snapshot(subject, spec)
    if files is None:
        return not_assertable(NO_SNAPSHOT)
    missing: list[str] = []
    found: dict[str, None] = {}
    for pattern in spec:
        hits = _found_by(pattern, files)
        there = [path for path in hits if not files[path].dangling]
        if hits and not there:
            spans = _in_files(subject, hits)
            return Finding(False, f"a link that leads nowhere: {listed(hits)}", spans=spans)
        if not there:
            missing.append(pattern)
        found.update(dict.fromkeys(there[:10]))
    if missing:
        found_instead = f"not there: {listed(missing)}", _instead(missing[0], files)
        spans = _deleted(subject, missing)
        return _unseen(missing, subject) or Finding(False, *found_instead, spans=spans)
    return Finding(True, "all are there", listed(found), spans=_in_files(subject, list(found)))


def files_not_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    """No path or glob finds anything."""
    files = _snapshot(subject, spec)
    if files is None:
        return not_assertable(NO_SNAPSHOT)
    for pattern in spec:
        hits = _found_by(pattern, files)
        if hits:
            spans = _in_files(subject, hits)
            return Finding(False, f"{pattern} is there", listed(hits), spans=spans)
    gone = _deleted(subject, spec)
    return _unseen(spec, subject) or Finding(True, "none is there", _show(files), spans=gone)


def file_contains(spec: Sequence[FileContains], subject: CheckSubject) -> Finding:
    """In each item, some file that the path finds has the content."""
    files = _snapshot(subject, [wanted.path for wanted in spec])
    if files is None:
        return not_assertable(NO_SNAPSHOT)
    finding = Finding(False, "there is nothing to look for")
    for wanted in spec:
        finding = _one_file(wanted, files, subject)
        if not finding.passed:
            return finding
    return finding


def _one_file(wanted: FileContains, files: Files, subject: CheckSubject) -> Finding:
    path = normal_path(wanted.path)  # directories do not count
    named = [path] if path in files else [name for name in files if matches_glob(name, path)]
    if not named:
        near, gone = _instead(wanted.path, files), _deleted(subject, [wanted.path])
        missing = Finding(False, f"{wanted.path} is not there", near, spans=gone)
        return _unseen([wanted.path], subject) or missing
    unread: list[str] = []
    leading_out: list[str] = []
    last = ""
    for path in named:
        state = _followed(path, files)
        content = None if state is None else text_of(state, subject)
        if content is None:
            (leading_out if state is None else unread).append(path)
            continue
        if wanted.matches is not None:
            text, find = searching(content)
        else:
            search = TextSearch(content, case_sensitive=subject.case_sensitive)
            text, find = search.text, search.find
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
    where = named[0] if len(named) == 1 else f"any of {len(named)} files"
    what = quoted(wanted.content) if wanted.content is not None else f"/{wanted.matches}/"
    return Finding(False, f"{what} is not in {where}", last, spans=_in_files(subject, named))


def _followed(path: str, files: Files) -> FileState | None:
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
        files = _snapshot(subject, [spec.file])
        if files is None:
            return not_assertable(NO_SNAPSHOT)
        name = normal_path(spec.file)
        state = _followed(name, files)
        if state is None:
            return Finding(False, f"{name} is not there", spans=_deleted(subject, [name]))
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
