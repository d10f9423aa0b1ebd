"""Other tools' files: YAML, JSON or JSON lines, with the place of every value and its use.

Whoever reads a value through a SourceValue has used it; what nobody used is reported in the end. A
suite comes from anybody, and an agent reads the files that it names: what lies outside of its
project, or hidden in it, is not touched (``../.ssh/id_rsa``).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import Loc, field_name, no_constant, parse_yaml, read_text, refuse

JSON_LINES = {".jsonl", ".ndjson"}
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF = re.compile(r"[\ud800-\udfff]")

SCHEME = "file://"
_PROGRAMS = ("js", "ts", "mjs", "cjs", "py", "rb")
_OPEN_DOT_NAMES = {".agentv", ".agents", ".claude", ".codex", ".github"}
_NEVER_COPIED = {".git", "node_modules", ".venv", "__pycache__"}
Placed = tuple[Path, str]
"""A file or directory to copy, and its path in the workspace (``""``: the workspace itself)."""


@dataclass(eq=False)
class SourceFile:
    """One file of another tool."""

    path: Path
    data: Any
    locate: Callable[..., tuple[int, int]]
    """Line and column of the value at a place (with `key=True`, of its key), or of the nearest."""
    used: set[Loc] = field(default_factory=set)
    """Everything at and below these places has been converted."""
    remarks: dict[tuple[Loc, str], tuple[str, str]] = field(default_factory=dict)
    related: dict[Path, SourceFile] = field(default_factory=dict)
    """The files that were read because this one names them; shared with them."""

    def open_related(self, path: Path) -> SourceFile:
        """A file that this one names, read once; its notes belong to this one's."""
        if path not in self.related:
            self.related[path] = replace(open_source(path), related=self.related)
        return self.related[path]

    def problem(self, loc: Loc, what: str, fix: str = "", severity: str = "error") -> Problem:
        """What makes the file impossible to convert; or what is `lost` or `changed`, at its key."""
        at_key = severity != "error" and bool(loc) and isinstance(loc[-1], str)
        where = self.locate(loc, key=at_key)
        return Problem(self.path, *where, field_name(loc), what, fix, severity)

    def notes(self, explanations: dict[str, str]) -> list[Problem]:
        """What is lost or changed, in the file's order; `explanations` say why a key is lost."""
        found = [self.problem(loc, what, *about) for (loc, what), about in self.remarks.items()]
        for loc in unused(self.data, self.used):
            names = [part for part in reversed(loc) if isinstance(part, str)]
            name = "vars" if "vars" in names else next(iter(names), "")
            instead = explanations.get(name, "left out: there is no counterpart")
            found.append(self.problem(loc, "not carried over", instead, "lost"))
        return sorted(found, key=lambda note: (note.line, note.column))


def unused(data: Any, used: set[Loc]) -> Iterator[Loc]:
    """The highest places within `data` below which nothing was used, in the data's order."""
    inner = {loc[:length] for loc in used for length in range(len(loc))}

    def below(data: Any, loc: Loc) -> Iterator[Loc]:
        if loc in used:
            return
        if loc and loc not in inner:
            yield loc
        elif isinstance(data, dict | list):
            for part, value in data.items() if isinstance(data, dict) else enumerate(data):
                yield from below(value, (*loc, part))

    yield from below(data, ())


def open_source(path: Path) -> SourceFile:
    """The file; JSON lines are a list. Raises InvalidFilesError for anything else."""
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return parse_source(read_text(path), path)
    if suffix == ".json":
        return parse_json(read_text(path), path)
    if suffix not in JSON_LINES:
        what = f"`{path.suffix or path.name}` files are not read"
        refuse(path, what, "give a .yaml, .json or .jsonl file")
    numbered = enumerate(read_text(path).split("\n"))
    lines = [(above, parse_json(line, path, above)) for above, line in numbered if line.strip()]
    if not lines:
        refuse(path, "the file is empty")

    def locate(loc: Loc, *, key: bool = False) -> tuple[int, int]:
        above, source = lines[int(loc[0]) if loc else 0]
        line, column = source.locate(loc[1:], key=key)
        return above + line, column

    return SourceFile(path, [source.data for _, source in lines], locate)


def parse_source(text: str, path: Path) -> SourceFile:
    """YAML whose top level is a mapping or a list. Raises InvalidFilesError."""
    document = parse_yaml(text, path, lists=True)
    return SourceFile(path, document.data, document.locate)


def parse_json(text: str, path: Path, above: int = 0) -> SourceFile:
    """A JSON value below so many lines. Raises InvalidFilesError with the place of what is none."""
    try:
        data = json.loads(text, parse_constant=no_constant)
        if "\\u" in text and _HALF.search(json.dumps(data, ensure_ascii=False)):
            raise ValueError("half of a surrogate pair in a text")
    except (ValueError, RecursionError) as error:
        what = getattr(error, "msg", str(error).partition(";")[0])
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        refuse(path, f"this is not JSON: {what}", "", above + line, column)
    # JSON is YAML but for a few characters and escapes: that is how its values are found again.
    pairs = _PAIR.sub(lambda pair: json.loads(f'"{pair[0]}"'), text)
    try:
        return replace(parse_source(pairs, path), data=data)
    except InvalidFilesError as error:
        problem = error.problems[0]
        if any(words in problem.message for words in ("already", "nesting")):
            refuse(path, problem.message, problem.fix, above + problem.line, problem.column)
        return SourceFile(path, data, lambda *_, **__: (1, 1))


def as_text(value: Any) -> str:
    """A scalar as it would be written; a list or mapping as JSON; nothing as an empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return str(value)


def tidy(number: float) -> float | int:
    """A whole number as such; one that was spelled unusually (``0042``) as it counts."""
    return int(number) if number == int(number) else number


@dataclass(frozen=True, eq=False)
class SourceValue:
    """One place in a source; false if nothing is there."""

    source: SourceFile
    loc: Loc
    value: Any
    scope: TemplateScope | None = None

    @classmethod
    def top(cls, source: SourceFile) -> SourceValue:
        """The source's whole value."""
        return cls(source, (), source.data)

    def __bool__(self) -> bool:
        return self.value is not None

    def with_scope(self, scope: TemplateScope | None) -> SourceValue:
        """The same place, its templates filled in from `scope`."""
        return replace(self, scope=scope)

    @property
    def nothing(self) -> SourceValue:
        """A false value."""
        return replace(self, value=None)

    def get(self, *names: str) -> SourceValue:
        """The value under the first of `names` that is there and not null; else a false one."""
        for name in names if isinstance(self.value, dict) else ():
            if name in self.value:
                if self.value[name] is not None:
                    return self._child(name)
                self.source.used.add((*self.loc, name))  # null: there is nothing to lose
        return self.nothing

    def inner(self, *names: str) -> SourceValue:
        """The same of a mapping; anything else is itself what would stand there."""
        return self.get(*names) if isinstance(self.value, dict) else self

    def items(self) -> Iterator[tuple[str, SourceValue]]:
        """The entries of a mapping; none of anything else."""
        for key in self.value if isinstance(self.value, dict) else ():
            yield str(key), self._child(key)

    def elements(self) -> list[SourceValue]:
        """The items of a list; a single value is a list of one."""
        if isinstance(self.value, list):
            if not self.value:
                self.use()
            return [self._child(index) for index in range(len(self.value))]
        return [self] if self else []

    def _child(self, part: Any) -> SourceValue:
        return replace(self, loc=(*self.loc, part), value=self.value[part])

    def use(self) -> None:
        """Everything in it has been converted."""
        if self:
            self.source.used.add(self.loc)

    def take(self) -> Any:
        """The value, templates filled in."""
        self.use()
        return self.scope.fill(self.value, self) if self.scope else self.value

    def text(self) -> str:
        """The value as text."""
        return as_text(self.take())

    def texts(self) -> list[str]:
        """The value as a list of texts."""
        value = self.take()
        listed = value if isinstance(value, list) else [] if value is None else [value]
        return [as_text(item) for item in listed]

    def number(self) -> float | int | None:
        """The value as a number; None (and a note) if it is none."""
        value = self.take()
        with suppress(TypeError, ValueError, OverflowError):
            if not isinstance(value, bool) and isfinite(number := float(value)):
                return tidy(number)
        if self:
            self.lost("not a number")
        return None

    def drop(self, what: str, instead: str = "left out") -> None:
        """Report that this is lost, with everything in it."""
        self.use()
        self.lost(what, instead)

    def lost(self, what: str, instead: str = "left out") -> None:
        """Report that something of this is lost; the rest of it is accounted for elsewhere."""
        self.source.remarks.setdefault((self.loc, what), (instead, "lost"))

    def changed(self, what: str, instead: str) -> None:
        """Report that this was converted, but not exactly."""
        self.source.remarks.setdefault((self.loc, what), (instead, "changed"))

    def refuse(self, message: str, fix: str = "") -> InvalidFilesError:
        """What makes the file impossible to convert, to be raised."""
        return InvalidFilesError([self.source.problem(self.loc, message, fix)])

    # Files that the source names.

    def find(self, reference: str, base: Path | None = None) -> list[Path]:
        """The file, directory, or files of a glob, with a note if there is none.

        They may lie in the repository of the file that names them, else as far as one level up.
        """
        name = reference.removeprefix(SCHEME)
        start = (base or self.source.path.parent).resolve()
        directory = self.source.path.resolve().parent
        repositories = (up for up in (directory, *directory.parents) if (up / ".git").exists())
        project = next(repositories, directory.parent)
        try:
            if any(mark in name for mark in "*?["):
                found = [path.resolve() for path in sorted(start.glob(name)) if path.is_file()]
            else:
                # Other tools look in the directories above, too, up to the repository's own.
                above = [p for p in (start, *start.parents) if p.is_relative_to(project)] or [start]
                found = [(p / name).resolve() for p in above if (p / name).exists()][:1]
        except (OSError, ValueError, NotImplementedError):
            found = []
        within = {p: p.relative_to(project).parts for p in found if p.is_relative_to(project)}
        open_ones = [
            path
            for path, parts in within.items()
            if all(part in _OPEN_DOT_NAMES or not part.startswith(".") for part in parts)
        ]
        if not found:
            self.lost(f"there is no `{name}`", "not read: add the file, and import again")
        elif not open_ones:
            what = f"`{name}` lies outside of {project.name}/ or is hidden in it"
            self.lost(what, "not read: copy it into the suite yourself")
        return open_ones

    def read_file(self, reference: str, base: Path | None = None) -> str | None:
        """The text of the file that is meant; None, and a note, if it is not to be had."""
        if reference.rpartition(".")[2].partition(":")[0] in _PROGRAMS:
            self.lost("this is made by a program", "left out: write the value itself")
            return None
        try:
            return next(map(read_text, self.find(reference, base)), None)
        except InvalidFilesError as error:
            self.lost(f"`{reference}`: {error.problems[0].message}", "not read")
            return None

    def place(
        self,
        reference: str,
        placed: list[Placed],
        base: Path | None = None,
        target: str | None = None,
    ) -> str:
        """Have what is named in the workspace, if it is to be had; its path there in any case."""
        target = workspace_path(reference) if target is None else target
        found = self.find(reference, base)
        if found and (found[0], target) not in placed:
            placed.append((found[0], target))
        return target


def workspace_path(reference: str) -> str:
    """Where a named file goes in the workspace: its path without the steps upwards."""
    parts = PurePosixPath(reference.removeprefix(SCHEME)).parts
    return "/".join(part for part in parts if part not in ("..", ".", "/")) or "file"


def files_below(path: Path) -> Iterator[tuple[Path, str]]:
    """The regular files in a directory with their paths from there; a file itself with ``""``."""
    if not path.is_dir():
        yield path, ""
    for here, names, files in os.walk(path):
        names[:] = sorted(n for n in names if n not in _NEVER_COPIED)
        for found in (Path(here) / name for name in sorted(files)):
            if found.is_file() and not found.is_symlink():
                yield found, found.relative_to(path).as_posix()


# Templates of other tools (nunjucks): names, parts of values, and two filters. A text with more
# in it (conditions, loops, arithmetic) is left as it is, and reported.

_LOOP = re.compile(
    r"\{%-?\s*for\s[^%]*\b_conversation\b[^%]*%\}.*?\{%-?\s*endfor\s*-?%\}", re.DOTALL
)
"""What repeats the earlier messages of a conversation: the agent's session holds them."""
_PLACEHOLDER = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_EXPRESSION = re.compile(
    r"(?:vars\.)?(?P<name>[A-Za-z_]\w*)(?P<steps>(?:\.\w+|\[\d+\])*)"
    r"\s*(?:\|\s*(?P<filter>dump|default\((?P<default>[^()]*)\)))?"
)
_MOST_NESTED = 8


@dataclass
class TemplateScope:
    """The names that the templates of one test know."""

    variables: Mapping[str, SourceValue] = field(default_factory=dict)
    empties: bool = True
    """A name without a value is an empty text, as in nunjucks; else the text stays as it is."""
    _depth: int = 0

    def fill(self, value: Any, node: SourceValue) -> Any:
        """`value` with its templates filled in; of the environment, which has secrets, nothing."""
        if isinstance(value, str):
            return self._text(value, node)
        if isinstance(value, list):
            return [self.fill(item, node) for item in value]
        if isinstance(value, dict):
            return {key: self.fill(item, node) for key, item in value.items()}
        return value

    def _text(self, text: str, node: SourceValue) -> Any:
        if "{{" not in text and "{%" not in text:
            return text
        missing: list[str] = []
        self._depth += 1
        try:
            rest = _LOOP.sub("", text)
            if "{%" in rest or self._depth > _MOST_NESTED:
                raise LookupError("a condition or a loop")
            if (whole := _PLACEHOLDER.fullmatch(rest.strip())) and "}}" not in whole[1]:
                found = self._value(whole[1], missing)
                made = "" if found is None else found
            else:
                made = _PLACEHOLDER.sub(lambda one: as_text(self._value(one[1], missing)), rest)
        except LookupError as error:
            node.changed(f"a template that cannot be filled in ({error.args[0]})", "left as it is")
            return text
        finally:
            self._depth -= 1
        became = "it became an empty text" if self.empties else "the text is left as it is"
        for name in missing:
            node.changed(f"`{name}` has no value", f"{became}, as in the other tool")
        return text if missing and not self.empties else made

    def _value(self, expression: str, missing: list[str]) -> Any:
        """What stands between the braces; without a value None, and its name goes to `missing`."""
        match = _EXPRESSION.fullmatch(expression)
        known_later = match is not None and match["name"] == "env" and match["default"] is None
        if match is None or known_later:
            raise LookupError(f"`{expression}`")
        value = self.lookup(match["name"], re.findall(r"\w+", match["steps"]))
        if match["filter"] == "dump":
            return json.dumps(value, ensure_ascii=False)
        if value is None and match["default"] is not None:
            return match["default"].strip().strip("'\"")
        if value is None:
            missing.append(match["name"])
        return value

    def lookup(self, name: str, steps: Iterable[str] = ()) -> Any:
        """The variable's value, or what `steps` lead to in it; None if there is no such thing."""
        if name not in self.variables:
            return None
        node = self.variables[name]
        node.use()
        value = self.fill(node.value, node)
        for step in steps:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            elif isinstance(value, list | str) and step == "length":
                value = len(value)
            else:
                return None
        return value
