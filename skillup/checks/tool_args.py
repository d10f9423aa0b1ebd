"""Arguments of tool calls: which one is meant, and whether it is as wanted."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from skillup.checks.evidence import around
from skillup.checks.folding import Haystack, plain
from skillup.checks.patterns import Searcher
from skillup.checks.values import as_text, same_value
from skillup.schema.check_specs import ArgMatch
from skillup.schema.record import ToolCall

_ABSENT = object()
_FILE = ("file_path", "notebook_path", "filename")
_PATHS = frozenset({"path", *_FILE})

PORTABLE_ARGUMENTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "shell": {"command": ("cmd", "script")},
    "read": {"path": _FILE},
    "write": {"path": _FILE, "content": ("text", "file_text")},
    "edit": {"path": _FILE},
    "search": {"pattern": ("query", "regex")},
    "web": {"url": ("uri",), "query": ("q",)},
    "skill": {"skill": ("name", "command")},
}
"""Kind → portable argument → what engines call it. As kinds make a check of calls portable, these
make one of their arguments so: ``{kind: write, args: {path: …}}`` means claude's ``file_path``, and
``file_path`` means codex's ``path``."""


def argument(call: ToolCall, path: str) -> Any:
    """The call's argument `path`: by that name, by a dotted path, or as this engine calls it.

    What is not there is a value of its own, different from null: see :func:`is_there`.
    """
    if path in call.arguments:
        return call.arguments[path]
    here: Any = call.arguments
    for step in path.split("."):
        if isinstance(here, Mapping):
            names = (step, *_other_names(call.kind, step))
            here = next((here[name] for name in names if name in here), _ABSENT)
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):
            here = here[int(step)]
        else:
            return _ABSENT
    return here


def _other_names(kind: str, name: str) -> tuple[str, ...]:
    for portable, own in PORTABLE_ARGUMENTS.get(kind, {}).items():
        if name == portable or name in own:
            return (portable, *own)
    return ()


def is_there(value: Any) -> bool:
    """Whether :func:`argument` found something."""
    return value is not _ABSENT


def argument_text(value: Any) -> str:
    """An argument as text. A list of words, such as an argv, is the words with spaces between."""
    if isinstance(value, list):
        return " ".join(as_text(item) for item in value)
    return as_text(value)


def names_a_file(path: str, value: Any) -> bool:
    """Whether the argument `path` of a call is a path of a file."""
    return isinstance(value, str) and path.rpartition(".")[2] in _PATHS


def in_workspace(path: str, workspaces: Iterable[str]) -> str:
    """`path` without detours, and relative if it lies in the workspace."""
    path = posixpath.normpath(path.replace("\\", "/"))
    for root in workspaces:
        if path.startswith(f"{root}/"):
            return path[len(root) + 1 :]
    return path


def argument_matches(
    wanted: ArgMatch, value: Any, searcher: Searcher, *, case_sensitive: bool
) -> bool:
    """Whether `value` is as wanted: all the conditions that are given hold."""
    if not is_there(value):
        return wanted.exists is False and wanted.model_fields_set == {"exists"}
    if wanted.exists is False:
        return False
    if "equals" in wanted.model_fields_set and not same_value(
        wanted.equals, value, case_sensitive=case_sensitive, partly=True
    ):
        return False
    if wanted.contains is not None:
        haystack = Haystack(argument_text(value), case_sensitive=case_sensitive)
        if haystack.find(wanted.contains) is None:
            return False
    if wanted.matches is not None:
        return searcher.search(wanted.matches, plain(argument_text(value))) is not None
    return True


def argument_excerpt(wanted: ArgMatch, value: Any, *, case_sensitive: bool) -> str:
    """The piece of an argument's text that its condition is about; "" if it has no such piece."""
    if not is_there(value):
        return ""
    haystack = Haystack(argument_text(value), case_sensitive=case_sensitive)
    if wanted.matches is not None:
        match = Searcher().search(wanted.matches, haystack.text)
        return "" if match is None else around(haystack.text, match.span())
    if wanted.contains is not None:
        span = haystack.find(wanted.contains)
        return "" if span is None else around(haystack.text, span)
    return ""
