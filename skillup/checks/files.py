"""Checks of the workspace as it stood after the turn."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence

from skillup.checks.context import (
    CannotEvaluateError,
    CheckSubject,
    Finding,
    NotAssertableError,
    around,
    beginning,
    listed,
    original_span,
    plain,
    quoted,
)
from skillup.checks.text import Searcher, find_text, first_difference
from skillup.schema.base import outside_problem
from skillup.schema.checks import FileContains, GoldenFile
from skillup.schema.grade import EvidenceSpan
from skillup.schema.record import FileState
from skillup.workspace.globs import matches_any_glob, matches_glob, may_match_below

_WILD = frozenset("*?[{")
NO_SNAPSHOT = "the workspace was not looked at after the turn"
Files = Mapping[str, FileState]


def path_problem(pattern: str) -> str | None:
    """Why `pattern` cannot name a file of the workspace; None if it can."""
    try:
        matches_glob("", normal_path(pattern))
    except re.error as trouble:
        return f"{pattern} is not a valid glob: {trouble}"
    return outside_problem(pattern)


def normal_path(pattern: str) -> str:
    """With forward slashes, without ``./`` and double slashes."""
    parts = pattern.replace("\\", "/").split("/")
    directory = "/" if len(parts) > 1 and not parts[-1] else ""
    return "/".join(part for part in parts if part not in ("", ".")) + directory


def _snapshot(subject: CheckSubject, patterns: Sequence[str]) -> Files:
    """The files after the last turn. Raises CannotEvaluateError for a path that leads outside."""
    if subject.last.files is None:
        raise NotAssertableError(NO_SNAPSHOT)
    for pattern in patterns:
        if (problem := path_problem(pattern)) is not None:
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
    if not path.endswith("/"):
        return [name for name in files if matches_any_glob(name, [bare])]
    return [n for n in files if "/" in n and matches_any_glob(n.rpartition("/")[0], [bare])]


def _absent(found: str, files: Files, patterns: Sequence[str], subject: CheckSubject) -> Finding:
    """Not there, unless nobody looked there; its spans are such files that were deleted."""
    for pattern in patterns:
        path = normal_path(pattern).rstrip("/")
        for place in [".git"] if ".git" in path.split("/") else subject.last.unseen:
            inside = place.rstrip("/")
            if place == ".git" or path == inside or may_match_below(inside, path):
                raise NotAssertableError(f"{pattern}: {place} was not looked at")
    turns = [t for t in subject.record.turns if t.turn_number <= subject.last.turn_number]
    steps = [*(step for turn in turns for step in turn.executed()), subject.last]
    changes = [step.changes for step in steps if step.changes is not None]
    gone = dict.fromkeys(path for one in changes for path in one.deleted)
    deleted = dict.fromkeys(path for pattern in patterns for path in _found_by(pattern, gone))
    excerpt = f"the workspace has: {listed(files, nothing='no files')}"
    return Finding(False, found, excerpt, spans=_in_files(subject, list(deleted)))


def _in_files(subject: CheckSubject, paths: Sequence[str]) -> tuple[EvidenceSpan, ...]:
    return tuple(subject.span(subject.last, "file", path=path) for path in paths[:10])


def files_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    files = _snapshot(subject, spec)
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
        return _absent(f"not there: {listed(missing)}", files, missing, subject)
    return Finding(True, "all are there", listed(found), spans=_in_files(subject, list(found)))


def files_not_exist(spec: Sequence[str], subject: CheckSubject) -> Finding:
    files = _snapshot(subject, spec)
    for pattern in spec:
        if hits := _found_by(pattern, files):
            spans = _in_files(subject, hits)
            return Finding(False, f"{pattern} is there", listed(hits), spans=spans)
    gone = _absent("none is there", files, spec, subject)
    return Finding(True, gone.found, gone.excerpt, spans=gone.spans)


def file_contains(spec: Sequence[FileContains], subject: CheckSubject) -> Finding:
    """In each item, some file that the path finds has the content."""
    files = _snapshot(subject, [wanted.path for wanted in spec])
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
        return _absent(f"{wanted.path} is not there", files, [wanted.path], subject)
    unread, leading_out = list[str](), list[str]()
    last, searcher = "", Searcher()
    for path in named:
        state = _followed(path, files)
        content = None if state is None else text_of(state, subject)
        if content is None:
            (leading_out if state is None else unread).append(path)
            continue
        text = plain(content)
        if wanted.matches is not None:
            span = searcher.find(wanted.matches, text)
        else:
            exact = subject.case_sensitive
            span = find_text(content, wanted.content or "", case_sensitive=exact)
        if span is not None:
            start, end = original_span(content, span)
            place = subject.span(subject.last, "file", path=path, start=start, end=end)
            return Finding(True, f"found in {path}", around(text, span), spans=(place,))
        last = f"{path}: {beginning(text)}"
    if unread:
        raise CannotEvaluateError(f"the content of {listed(unread)} was not kept in the record")
    if leading_out:
        what = "links that lead to no file of the workspace"
        raise NotAssertableError(f"{what}: {listed(leading_out)}")
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


def golden_file(spec: GoldenFile, subject: CheckSubject) -> Finding:
    """The answer, or a workspace file, is the reference; white space at line ends is ignored."""
    reference = subject.record.references.get(spec.path)
    if reference is None:
        raise NotAssertableError(f"the reference {spec.path} was not found when the case ran")
    golden, name = text_of(reference, subject), "answer"
    actual: str | None = subject.answer
    spans: tuple[EvidenceSpan, ...] = ()
    if spec.file is not None:
        files, name = _snapshot(subject, [spec.file]), normal_path(spec.file)
        state = _followed(name, files)
        if state is None:
            return _absent(f"{name} is not there", files, [name], subject)
        actual, spans = text_of(state, subject), _in_files(subject, [name])
    if golden is None or actual is None:
        path = spec.path if golden is None else name
        raise CannotEvaluateError(f"the content of {path} was not kept in the record")
    wanted, lines = (
        [line.rstrip() for line in plain(text).strip().split("\n")] for text in (golden, actual)
    )
    if wanted == lines:
        found = f"the {name} is the same as {spec.path}"
    else:  # difflib's cost grows with the square of the length
        at = first_difference(wanted, lines)
        near = (wanted[at : at + 12], lines[at : at + 12])
        diff = difflib.unified_diff(*near, spec.path, name, lineterm="", n=1)
        found = "\n".join([f"differs from line {at + 1} on", *(line[:200] for line in diff)])
    return Finding(wanted == lines, found, beginning(actual), spans=spans)
