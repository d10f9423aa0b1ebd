"""Suites onto disk: an eval.yaml, a file for each case, and copies of the files they need."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from skillup.dataclass import mutable
from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.importers.source import Placed, SourceValue, files_below
from skillup.load.discover import SUITE_FILE
from skillup.load.yaml_reader import resolve_plain
from skillup.schema.case import Case
from skillup.schema.suite import Suite
from skillup.schema.templates import escape, has_templates
from skillup.workspace.disk import write_whole

_LONGEST_SLUG = 60


def slug(text: str, otherwise: str = "case") -> str:
    """`text` as a name for files and ids: lower case, digits and hyphens."""
    made = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")
    if len(made) > _LONGEST_SLUG:
        made = made[:_LONGEST_SLUG].rpartition("-")[0] or made[:_LONGEST_SLUG]
    return made or otherwise


def unique_name(name: str, taken: set[str]) -> str:
    """`name`, with a number if it is `taken` (in any case of letters), where it is added."""
    made, number = name, 1
    while made.casefold() in taken:
        number += 1
        made = f"{name}-{number}"
    taken.add(made.casefold())
    return made


def without_empty(**values: Any) -> dict[str, Any]:
    """The keys that say something."""
    return {key: value for key, value in values.items() if value not in (None, [], {}, "")}


@mutable
class CaseDraft:
    """One case. `node` is its place in the source; it has one turn or several."""

    node: SourceValue
    id: str = ""
    turns: list[dict[str, Any]] = field(default_factory=list)
    """Each with `content`, and with `assertions` and `expected_output` as they are."""
    conversation: bool = False  # Written as `turns` even if there is only one
    title: str = ""
    description: str = ""
    tags: list[str] = field(default_factory=list)
    depends_on: list[str] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    system: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    message_index: int | None = None
    took_place: bool = False  # The history is judged, and nothing is sent
    assertions: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    """`aggregation`, `on_turn_failure`, `window_size`, `pass_threshold`, `trials`, …"""
    file: str = ""  # Where it is written, in the suite's folder

    def as_dict(self, fixture: str = "") -> dict[str, Any]:
        """As it is written, no text a template of ours; `fixture` holds what is `placed`."""
        turns = [
            without_empty(
                content=escape(turn["content"]),
                expected_output=escape(turn.get("expected_output", "")),
                assertions=literal_checks(turn.get("assertions", [])),
            )
            for turn in self.turns
        ]
        several = self.conversation or len(turns) > 1
        first = {} if several else turns[0]
        given = {
            "system": escape(self.system),
            "history": [{**m, "content": escape(m["content"])} for m in self.history],
            "message_index": self.message_index,
            **({"turns": turns} if several else {"prompt": first.get("content")}),
        }
        if self.took_place:
            given = {"transcript": self.history}  # where nothing is a template
        return without_empty(
            id=self.id,
            title=self.title,
            description=self.description,
            tags=self.tags,
            depends_on=self.depends_on,
            context=without_empty(fixture=fixture, setup=self.setup),
            input=without_empty(**given),
            expected_output=first.get("expected_output", ""),
            assertions=[*first.get("assertions", ()), *literal_checks(self.assertions)],
            **self.settings,
        )


_CHECK_LISTS = ("any_of", "all_of", "none_of", "assertions")


def literal_checks(checks: Any) -> Any:
    """A check, or a list of checks, as they are written, whose texts are no templates."""
    if isinstance(checks, str):
        return escape(checks)
    if isinstance(checks, list):
        return [literal_checks(check) for check in checks]
    inner = {key: literal_checks(checks[key]) for key in _CHECK_LISTS if key in checks}
    own = {key: value for key, value in checks.items() if key not in inner}
    if has_templates(json.dumps(own, ensure_ascii=False)):
        own["literal"] = True
    return {**own, **inner}


@mutable
class SuiteDraft:
    """One suite and its cases, in order."""

    name: str
    description: str = ""
    skills: list[Path] = field(default_factory=list)
    cases: list[CaseDraft] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    parallelism: int | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    mcp_servers: list[dict[str, Any]] = field(default_factory=list)


def lay_out(draft: SuiteDraft, directory: Path) -> dict[Path, str | Path]:
    """Texts, and files to copy, by path. Raises InvalidFilesError, with places in the source."""
    # As the loader has it for a file; the eval.yaml that is there may be a link to elsewhere.
    resolved = directory.resolve()
    root = resolved.parent if resolved.name == "evals" else resolved
    names: set[str] = set()
    problems: list[Problem] = []
    files: dict[Path, str | Path] = {}
    for case in draft.cases:
        name = unique_name(slug(case.id), names)
        case.file = f"cases/{name}.yaml"
        fixture = directory / "fixtures" / name
        for source, target in case.placed:
            for path, inner in files_below(source):
                files[fixture / target / inner] = path
        data = case.as_dict(relative(root, fixture) if case.placed else "")
        try:
            Case.model_validate(data)
        except ValidationError as error:
            for detail in error.errors():
                where = ".".join(str(part) for part in detail["loc"])
                message = detail["msg"].removeprefix("Value error, ").replace(" || ", "; ")
                what = f"cannot become a case: {where}: {message}"
                problems.append(case.node.source.problem(case.node.loc, what))
        files[directory / case.file] = to_yaml(data)
    if problems:
        raise InvalidFilesError(problems)
    paths = [relative(root, directory / case.file) for case in draft.cases]
    suite = without_empty(
        name=draft.name,
        description=draft.description,
        skills=[{"path": relative(root, path)} for path in draft.skills],
        cases=without_empty(files=paths, defaults=draft.defaults, parallelism=draft.parallelism),
        environment=draft.environment,
        mcp=without_empty(servers=draft.mcp_servers),
    )
    Suite.model_validate(suite)
    files[directory / SUITE_FILE] = to_yaml(suite)
    return files


def relative(start: Path, path: Path) -> str:
    """The path to `path` as seen from the directory `start`."""
    return Path(os.path.relpath(path.resolve(), start.resolve())).as_posix()


def write_files(files: Mapping[Path, str | Path], *, force: bool = False) -> None:
    """Write texts, and copies of files.

    What is there is replaced with `force`, a link by a file; else it is a UsageError, and nothing
    is written.
    """
    there = [path for path in files if os.path.lexists(path)]
    if there and not force:
        shown = ", ".join(str(path) for path in there[:3])
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        hint = "choose another --out, or replace with --force"
        raise UsageError(f"already there: {shown}{more}", hint=hint)
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                write_whole(path, [content.encode("utf-8", "surrogateescape")])
                continue
            path.unlink(missing_ok=True)
            shutil.copy(content, path)
    except OSError as error:
        what = f"cannot write {error.filename}: {error.strerror}"
        raise UsageError(what, hint="choose a directory that can be written to") from error


# YAML that our reader, and any other, reads back as what it was.


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: each value is written where it stands."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of a list are indented below their key."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    # Not in a block: what would need an indentation indicator, an escape or a blank that gets lost,
    # and blank lines at its end, after which PyYAML ends the document.
    lines = text.split("\n")
    shown = all(line.isprintable() and line == line.rstrip() for line in lines)
    if len(lines) > 1 and shown and text[0] not in " \n" and not text.endswith("\n\n"):
        style = "|"
    elif not text.isprintable() or len(text) > 1000 or not isinstance(resolve_plain(text), str):
        style = '"'  # a plain text would not mean itself to a reader of YAML 1.2
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def quoted(text: str) -> str:
    """A double-quoted scalar, which says the same whatever is in it."""
    whole: str = yaml.dump(text, default_style='"', allow_unicode=True, width=sys.maxsize)
    return whole.strip()


def to_yaml(data: dict[str, Any]) -> str:
    """`data` in block style, keys in their order."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))
