"""Reading YAML: plain data, where each value of it stands, and what is wrong with it.

Scalars follow the core schema of YAML 1.2: ``on`` and ``yes`` are texts, as are dates, ``1:30``,
``1_000`` and numbers in an unusual spelling (``0042``, ``+7``, ``0x1F``). Refused with a place:
duplicate keys, tags, several documents, aliases that multiply, nesting without end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple, NoReturn, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from skillup.errors import InvalidFilesError, Problem, near_miss
from skillup.schema.base import descriptions, spellings


class _Pattern(NamedTuple):
    """One of PyYAML's own reader's, compiled if it is used: libyaml reads here."""

    text: Any
    flags: Any = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(_compile(*self), name)


_compile, re.compile = re.compile, _Pattern  # type: ignore[assignment]
try:  # Else it takes a thirtieth of the time until the first agent starts
    from yaml import SafeLoader
    from yaml.error import MarkedYAMLError, YAMLError
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
finally:
    re.compile = _compile
try:
    from yaml._yaml import CParser as _Parser
except ImportError:  # PyYAML without libyaml: many times slower, and refuses more tabs
    _Parser = SafeLoader  # type: ignore[assignment,misc]

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 100
MAX_REPEATED = 1_000_000  # Characters that aliases may repeat, in all

M = TypeVar("M", bound=BaseModel)
Loc = tuple[str | int, ...]
Scalar = str | int | float | bool | None


@dataclass(frozen=True, eq=False)
class Document:
    """One file as data; if its `text` is not known, all is on one `line`."""

    path: Path
    text: str
    data: dict[Any, Any]
    line: int = field(default=1, kw_only=True)
    moved: Mapping[Loc, Loc] = field(default_factory=dict, kw_only=True)
    """Of a case that is one path through branches: where its turns and checks are written."""

    def as_written(self, loc: Loc) -> Loc:
        known = next((end for end in (3, 2) if loc[:end] in self.moved), None)
        return loc if known is None else (*self.moved[loc[:known]], *loc[known:])

    def locate(self, loc: Loc, *, key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value at `loc`; of its key with `key`, or if it is empty.

        Where nothing is at `loc`, the nearest value around it is meant.
        """
        if not self.text:
            return self.line, 1
        node = _composed(self.text)
        places = node, node
        for part in self.as_written(loc):
            found = _child(node, part)
            if found is None:
                break
            places, node = found, found[1]
        is_empty = isinstance(node, ScalarNode) and not node.value and not node.style
        return line_and_column(self.text, places[not (key or is_empty)].start_mark.index)

    def problem(
        self, loc: Loc, message: str, fix: str = "", severity: str = "error", *, key: bool = False
    ) -> Problem:
        where = field_name(self.as_written(loc))
        return Problem(self.path, *self.locate(loc, key=key), where, message, fix, severity)


def field_name(loc: Iterable[object]) -> str:
    """A place in nested data, as people write it: ``input.turns[2]``, ``files["notes.txt"]``."""
    text = ""
    for part in loc:
        if isinstance(part, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", part):
            text += f".{part}" if text else part
            continue
        shown = str(part) if str(part).isprintable() else repr(str(part))[1:-1]
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        text += f'["{shown}"]' if isinstance(part, str) else f"[{shown}]"
    return text


def refuse(path: Path, message: str, fix: str = "", line: int = 1, column: int = 1) -> NoReturn:
    raise InvalidFilesError([Problem(path, line, column, "", message, fix)])


def read_file(path: Path) -> bytes:
    """The content of a regular file of at most MAX_BYTES. Raises InvalidFilesError."""
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):  # to open a pipe would wait for its writer
            refuse(path, "this is not a regular file")
        if status.st_size > MAX_BYTES:
            refuse(path, "the file is larger than 16 MB", "keep large texts in files of their own")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        refuse(path, f"the file cannot be read: {getattr(error, 'strerror', None) or error}")


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, without a byte order mark. Raises InvalidFilesError."""
    data = read_file(path)
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        refuse(path, message, "save it as UTF-8", *line_and_column(before, len(before)))


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def no_constant(constant: str) -> NoReturn:
    """For JSON's decoder: NaN and the infinities are refused."""
    raise ValueError(f"{constant} is no value of JSON")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For JSON's decoder: a key that is given twice is refused."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the key `{name}` is there twice")
        made[name] = value
    return made


def read_yaml(path: Path) -> Document:
    """The YAML file at `path`. Raises InvalidFilesError with the first that is wrong with it."""
    return parse_yaml(read_text(path), path)


def read_model(path: Path, model: type[M]) -> M:
    """What the YAML file at `path` says. Raises InvalidFilesError with all that is wrong."""
    document = read_yaml(path)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise InvalidFilesError(problems_from(error, document, model)) from None


def parse_yaml(text: str, path: Path, *, lists: bool = False) -> Document:
    """As :func:`read_yaml`, from text; with `lists`, its top level may also be a list."""
    text = text.removeprefix("\ufeff")
    try:
        node = _composed(text)
        if node is None or (isinstance(node, ScalarNode) and resolve_plain(node.value) is None):
            raise _RefusedError(0, "the file is empty", "write `key: value` lines")
        data = _Builder(text).value(node)
        if type(data) not in ((dict, list) if lists else (dict,)):
            what = "a list" if isinstance(data, list) else "a single value"
            message = f"the file holds {what}, not a mapping"
            raise _RefusedError(node.start_mark.index, message, "write `key: value` lines")
        return Document(path, text, data)
    except _RefusedError as refused:
        at, message, fix = refused.args
    except (YAMLError, ValueError, OverflowError) as error:  # also a character that is none
        at, message, fix = _explain(error, text)
    refuse(path, message, fix, *line_and_column(text, at))


_WORDS: dict[str, Scalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-")
       for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<int>-?0|-?[1-9][0-9]*)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?)"
)


def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted scalar. Raises ValueError if it is a number of too many digits."""
    if text in _WORDS:
        return _WORDS[text]
    if (number := _NUMBER.fullmatch(text)) is None:
        return text
    return int(text) if number["int"] else float(text)


class _RefusedError(Exception):
    """What is odd: offset, message, fix."""


class _Composer(_Parser):
    """Makes nodes whose tags are those that are written, and never too deeply nested ones."""

    depth = 0

    def descend_resolver(self, parent: Node | None, index: object) -> None:  # noqa: ARG002
        self.depth += 1
        if self.depth > MAX_DEPTH + 1:
            at = parent.start_mark.index if parent is not None else 0
            fix = "put a text that contains brackets in quotes"
            raise _RefusedError(at, f"more than {MAX_DEPTH} levels of nesting", fix)

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, kind: object, value: object, implicit: object) -> str:  # noqa: ARG002
        return ""


@lru_cache(2)
def _composed(text: str) -> Any:
    """The nodes: many times as large as the data, so that they are made again for a problem."""
    return _Composer(text).get_single_node()


def _is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.value == "<<" and not key.style


def _child(node: Node, part: str | int) -> tuple[Node, Node] | None:
    """The nodes of the key and the value that `node` has at `part`, its own or merged."""
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    merged: list[Node] = []
    for key, value in node.value if isinstance(node, MappingNode) else ():
        if _is_merge(key):
            merged += value.value if isinstance(value, SequenceNode) else [value]
        elif (key.value if key.style else resolve_plain(key.value)) == part:
            return key, value
    return next((found for one in merged if (found := _child(one, part))), None)


class _Builder:
    def __init__(self, text: str) -> None:
        self._text = text
        self._built: dict[Node, tuple[Any, int]] = {}  # and its size: 0 while it is being built
        self._repeated = 0

    def value(self, node: Node) -> Any:
        at = node.start_mark.index
        if node in self._built:
            value, size = self._built[node]
            if not size:
                raise _RefusedError(at, "an alias stands inside its own value", "remove it")
            self._repeated += size
            if self._repeated > MAX_REPEATED:
                message = f"the aliases repeat more than {MAX_REPEATED} characters"
                raise _RefusedError(at, message, "write out what is meant")
            return value
        before, self._built[node] = self._repeated, (None, 0)
        if node.tag and not (isinstance(node, ScalarNode) and node.tag.endswith(":str")):
            tag = node.tag.replace("tag:yaml.org,2002:", "!!", 1)[:60]
            message = f"the tag `{tag}` is not allowed: a file holds plain data"
            raise _RefusedError(at, message, "remove it, or quote a text that begins with `!`")
        value = node.value
        if isinstance(node, MappingNode):
            value = self._mapping(node)
        elif isinstance(node, SequenceNode):
            value = [self.value(item) for item in node.value]
        elif isinstance(node, ScalarNode) and not node.style and not node.tag:
            try:
                value = resolve_plain(value)
            except ValueError:
                raise _RefusedError(at, "a number of too many digits", _QUOTE_IT) from None
        self._built[node] = value, node.end_mark.index - at + 1 + self._repeated - before
        return value

    def _mapping(self, node: MappingNode) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        keys, merges = dict[Any, int](), list[dict[Any, Any]]()
        for key_node, value_node in node.value:
            at = key_node.start_mark.index
            key, value = self.value(key_node), self.value(value_node)
            if _is_merge(key_node):
                sources = value if isinstance(value, list) else [value]
                if not all(isinstance(source, dict) for source in sources):
                    fix = 'write `<<: *name`, or put the key "<<" in quotes'
                    message = "`<<` takes a mapping, or a list of mappings"
                    raise _RefusedError(value_node.start_mark.index, message, fix)
                merges += sources
                continue
            if isinstance(key, list | dict):
                message = "a list or a mapping cannot be a key"
                raise _RefusedError(at, message, "put the key in quotes if it is text")
            if key in keys:
                first = "line {}, column {}".format(*line_and_column(self._text, keys[key]))
                message = f"the key `{key}` was given already, at {first}"
                raise _RefusedError(at, message, "keep one of the two")
            data[key], keys[key] = value, at
        for source in merges:  # explicit keys win, then whichever was merged first
            data = {**source, **data}
        return data


# What helps against a parser's complaint, by some words of it (libyaml and PyYAML differ).
_QUOTE_IT = "put the text in quotes"
_FIXES: tuple[tuple[str, str], ...] = (
    ("escape", "put a regex or a Windows path in single quotes"),
    ("quoted scalar", "close the quote"),
    ("mapping values|unexpected ':'", f"check the indentation; if it holds `: `, {_QUOTE_IT}"),
    ("expected ':'", "write `key: value`; a text that goes on must be indented deeper"),
    ("document", "keep one document in each file"),
    ("expected ('-'|<block end>|key)|block", "check the indentation and the quotes above"),
    ("',' or", "write a comma, or the closing bracket"),
    ("'.t'", "indent with spaces, not with tabs"),
    ("", f"{_QUOTE_IT} if it is one"),
)


def _explain(error: Exception, text: str) -> tuple[int, str, str]:
    if not isinstance(error, MarkedYAMLError):
        at = getattr(error, "position", 0)
        return at, f"not YAML: {str(error).splitlines()[0]}", "save it as plain text in UTF-8"
    # libyaml's last mark may lie behind the text.
    at = min(error.problem_mark.index if error.problem_mark else 0, len(text))
    complaint = str(error.problem).replace("character that", f"{text[at : at + 1]!r} that")
    if error.context:
        began = error.context_mark.index if error.context_mark else 0
        complaint = f"{error.context} from line {line_and_column(text, began)[0]} on, {complaint}"
    fix = next(fix for words, fix in _FIXES if re.search(words, complaint))
    return at, f"not YAML: {complaint}", fix


# From pydantic's validation errors to problems with a place, a field and a way out.


@cache
def keys_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    model.model_rebuild()  # those that name themselves are not whole before
    fields = model.model_fields.items()
    return {key: info for name, info in fields for key in spellings(name, info)}


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models of an annotation, also those in its unions, lists and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    here = [model]
    for part in loc:
        fields = [info for model in here if (info := keys_of(model).get(str(part)))]
        here = [model for info in fields for model in _models(info.annotation)] or here
    return here[0]


_MOST_LISTED = 12  # Beyond this, allowed values (or keys) are not listed
_OFTEN: Mapping[str, tuple[str, str]] = {  # wrong keys: one that is known there, what to do
    "llm_judge": ("rubric", ""), "timeout": ("timeout_seconds", ""), "user": ("content", ""),
    "tool": ("kind", "did you mean `name`?"), "say": ("replies", "begin each reply with `- `"),
    "fixtures": ("context", "use `context.fixture`"), "value": ("any", "a bare text will do"),
    "regex": ("matches", ""), "regexp": ("matches", ""), "pattern": ("matches", ""),
}  # fmt: skip


def problems_from(
    error: ValidationError, document: Document, model: type[BaseModel]
) -> list[Problem]:
    """The problems behind `error`, in the order of the file; what was validated is its data."""
    problems, misspelled = dict[Problem, None](), set[tuple[Loc, int | None]]()
    for one in sorted(error.errors(include_url=False), key=lambda one: one["type"] == "missing"):
        loc: Loc = tuple(part for part in one["loc"] if part != "[key]")
        path: Loc = ()
        value: Any = document.data
        within: Any = {}
        for part in loc:  # but for the levels that a short form leaves out
            is_key = isinstance(value, dict) and part in value
            if is_key or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
                path, within, value = (*path, part), value, value[part]
        holder = _model_at(model, loc[:-1])
        keys, key = keys_of(holder), str(loc[-1]) if loc else ""
        on_key = one["type"] in ("extra_forbidden", "invalid_key") or one["loc"][-1:] == ("[key]",)
        # A mapping's own first line says more about it than the first key inside.
        at_key = on_key or (isinstance(value, dict | list) and bool(path))
        if one["type"] == "extra_forbidden":
            guess = often if (often := _OFTEN.get(key, ("",))[0]) in keys else near_miss(key, keys)
            misspelled.add((path[:-1], id(keys[guess]) if guess else None))
            message, fix = _unknown_key(one, path, keys, guess, within)
        elif one["type"] == "missing":
            if (path, id(keys.get(key))) in misspelled:
                continue  # one mistake, one message
            about = descriptions(holder).get(key, "It is needed")
            message, path = f"`{key}` is missing", (*path, key)
            fix = f"add it ({about[:1].lower()}{about[1:].rstrip('.')})"
        else:
            message, fix = _words(one, on_key)
            inner = keys_of(_model_at(model, loc))
            if one["type"] == "model_type" and inner is not keys and len(inner) <= _MOST_LISTED:
                fix += f" ({_quoted(inner)})"
        problems[document.problem(path, message, fix, key=at_key)] = None
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


_KINDS: Mapping[str, tuple[str, str]] = {  # by how the error type begins
    "string": ("a text", "write a text"),
    "int": ("a whole number", "write a number without quotes or a decimal point, such as 3"),
    "float": ("a number", "write a number without quotes, such as 3"),
    "bool": ("true or false", "write `true` or `false`"),
    "list": ("a list", "begin each item with `- ` on a line of its own, or write [one, other]"),
    **dict.fromkeys(("dict", "model"), ("a mapping", "write `key: value` lines below it")),
}
_RANGES: Mapping[str, tuple[str, str]] = {
    "greater_than": ("{value} is out of range", "it must be above {gt:g}"),
    "greater_than_equal": ("{value} is out of range", "it must be at least {ge:g}"),
    "less_than": ("{value} is out of range", "it must be below {lt:g}"),
    "less_than_equal": ("{value} is out of range", "it must be at most {le:.12g}"),
    "string_too_short": ("the text is empty", "write a text, or remove the key"),
    "too_short": ("it is empty", "at least {min_length} item must be there"),
    "string_pattern_mismatch": ("{value} has not the right form", "it must match {pattern}"),
}


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if text.isprintable() else repr(text)[1:-1]
    return f"`{text}`" if len(text) <= 40 else f"`{text[:39]}…`"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _words(one: Mapping[str, Any], on_key: bool) -> tuple[str, str]:
    kind, value, context = one["type"], _shown(one["input"]), one.get("ctx") or {}
    if on_key and not isinstance(one["input"], str):
        return f"the key {value} is not a text", f'put it in quotes: "{one["input"]}"'
    if kind == "value_error":
        message, _, fix = str(context.get("error", "")).partition(" || ")
        return message, fix
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        guess = near_miss(str(one["input"]), allowed)
        fix = f"did you mean `{guess}`? " if guess else ""
        fix += f"allowed: {_quoted(allowed)}" if not guess or len(allowed) <= _MOST_LISTED else ""
        return f"{value} is not allowed here", fix.rstrip()
    if kind in _RANGES:
        message, fix = (text.format(value=value, **context) for text in _RANGES[kind])
        return f"the key {message}" if on_key else message, fix
    expected, fix = _KINDS.get(kind.partition("_")[0], ("right here", ""))
    if one["input"] is None:
        return "nothing is written here", f"write {expected}, or remove the key"
    return f"{value} is not {expected}", fix


def _unknown_key(
    one: Mapping[str, Any], path: Loc, keys: Mapping[str, FieldInfo], guess: str | None, beside: Any
) -> tuple[str, str]:
    key = str(path[-1])
    message = f"unknown key {_shown(key)}"
    if one["input"] is None and not key.isidentifier():
        # `{content: Great, thanks.}` is a mapping with the keys `content` and `thanks.`
        return message, "within braces a comma begins a new key: put the text in quotes"
    for name, info in keys.items():
        inner = () if get_origin(info.annotation) in (list, dict) else _models(info.annotation)
        # Of a mapping inside that was not written it is chance: a judge has a `context`, too.
        if (len(path) == 1 or name in beside) and any(key in keys_of(child) for child in inner):
            owner = field_name((*path[:-1], name))
            return message, f"it belongs to `{owner}`: check the indentation"
    if guess is not None:
        often, fix = _OFTEN.get(key, ("", ""))
        return message, (often == guess and fix) or f"did you mean `{guess}`?"
    if 0 < len(keys) <= _MOST_LISTED:
        return message, f"known here: {_quoted(keys)}"
    fix = "put a rubric that holds `: ` in quotes; " * ("rubric" in keys)
    return message, f"{fix}`skillup schema` lists the keys that are known here"
