"""From a YAML parser's events to plain Python data, bounded in depth and in what aliases add.

The builder keeps its own stack, so that deep nesting cannot exhaust Python's. It is used twice:
quickly, without positions, giving up at the first oddity (:class:`LookAgain`); then, if need be,
carefully, with :class:`Places`, where every oddity is noted and building goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NoReturn

from skillup.load.alias_weights import Weights
from skillup.load.field_names import field_name
from skillup.load.scalars import FIRST_CHARACTERS, Scalar, resolve_plain

MAX_DEPTH = 100
MAX_ALIASED = 100_000
_MAX_FINDINGS = 100
_CORE_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "bool": (bool, "true or false"),
    "null": (type(None), "null"),
}


class EventKind(Enum):
    """What a parser's event is; the reader maps its library's classes to these."""

    STREAM = auto()
    DOCUMENT_START = auto()
    SCALAR = auto()
    ALIAS = auto()
    MAPPING_START = auto()
    SEQUENCE_START = auto()
    END = auto()
    STREAM_END = auto()


# Looked up for every event: members of an Enum are slow to reach through their class.
_STREAM, _DOCUMENT_START, _SCALAR, _ALIAS, _MAPPING_START, _SEQUENCE_START, _END, _STREAM_END = (
    EventKind
)


class LookAgain(Exception):  # noqa: N818 - a signal within this package, not an error of anybody
    """Something is odd: build again with places, to say what and where."""


class StopBuilding(Exception):  # noqa: N818
    """There is no point in going on; the findings say why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at an offset of the text; `first_at` is where its other half stands."""

    at: int
    field: str
    message: str
    fix: str
    first_at: int | None = None


@dataclass(slots=True)
class Places:
    """The data of one text once more, and the offsets where its keys and values begin."""

    data: Any = None
    start: int = 0
    findings: list[Finding] = field(default_factory=list)
    of_items: dict[int, list[int]] = field(default_factory=dict)
    """By the ``id`` of a list in `data`: the offset of each item."""
    of_keys: dict[int, dict[Any, tuple[int, int]]] = field(default_factory=dict)
    """By the ``id`` of a mapping in `data`, by key: the offsets of the key and of its value."""

    def of(self, container: Any, part: Any) -> tuple[int, int] | None:
        """Offsets of the key and of the value that `part` names in `container`."""
        if isinstance(container, list):
            items = self.of_items.get(id(container), [])
            if isinstance(part, int) and 0 <= part < len(items):
                return items[part], items[part]
            return None
        if isinstance(container, dict) and isinstance(part, Hashable):
            return self.of_keys.get(id(container), {}).get(part)
        return None


class _Waiting(Enum):
    """What the next value is to a mapping, where it is not the value of a key."""

    FOR_KEY = auto()
    FOR_MERGE = auto()
    FOR_NOTHING = auto()  # the key was refused, and so its value goes nowhere


_FOR_KEY, _FOR_MERGE, _FOR_NOTHING = _Waiting


@dataclass(slots=True)
class _Merge:
    value: Any
    at: int


class Builder:
    """Builds one document. `kinds` maps the classes of the events to their kinds."""

    def __init__(
        self,
        next_event: Callable[[], Any],
        kinds: Mapping[type, EventKind],
        places: Places | None = None,
    ) -> None:
        self._next_event = next_event
        self._kinds = kinds
        self._places = places
        self._anchors: dict[str, Any] = {}
        self._weights = Weights(MAX_ALIASED)
        self._aliased = 0
        self._merges: dict[int, list[_Merge]] = {}
        # Around the container being filled: the outer ones, what each waits for next, and the key
        # (or index) that leads inside.
        self._stack: list[tuple[Any, Any, Any]] = []

    def build(self) -> dict[Any, Any]:
        """The one mapping in the file.

        Raises LookAgain (quick) or StopBuilding (careful) if there is anything but that, and lets
        the parser's own errors through.
        """
        next_event, kinds, places, stack = self._next_event, self._kinds, self._places, self._stack
        top: list[Any] = []
        container: Any = top
        key: Any = None
        key_at = 0
        in_list = True
        while True:
            event = next_event()
            kind = kinds[event.__class__]
            if kind is _SCALAR:
                value = event.value
                if event.tag is not None or (not event.style and value[:1] in FIRST_CHARACTERS):
                    value = self._scalar(event, container, key)
                if event.anchor is not None:
                    self._anchors[event.anchor] = value
            elif kind is _END:
                if self._merges:
                    self._merge(container)
                container, key, _ = stack.pop()
                in_list = container.__class__ is list
                continue
            elif kind is _ALIAS:
                value = self._alias(event, container, key)
            elif kind is _STREAM:
                continue
            elif kind is _STREAM_END:
                return self._finished(top)
            elif kind is _DOCUMENT_START:
                if top:
                    self._stop(event, "a second document begins here",
                               "keep one document in each file")  # fmt: skip
                continue
            else:
                value = self._opened(event, kind, container, key)

            starts = kind is _MAPPING_START or kind is _SEQUENCE_START
            name: Any = key
            if in_list:
                if places is not None:
                    at = event.start_mark.index
                    if not stack:
                        places.start = at
                    places.of_items.setdefault(id(container), []).append(at)
                container.append(value)
                name = len(container) - 1
            elif key is _FOR_KEY:
                key = self._key(value, event, container, starts)
                if places is not None:
                    key_at = event.start_mark.index
                if not starts:
                    continue
            else:
                if key is _FOR_MERGE:
                    merge = _Merge(value, event.start_mark.index)
                    self._merges.setdefault(id(container), []).append(merge)
                elif key is not _FOR_NOTHING:
                    container[key] = value
                    if places is not None:
                        # An empty value has no place of its own.
                        empty = kind is _SCALAR and not event.value and not event.style
                        value_at = key_at if empty else event.start_mark.index
                        inside = places.of_keys.setdefault(id(container), {})
                        inside[key] = (key_at, value_at)
                key = _FOR_KEY
            if starts:
                stack.append((container, key, name))
                container = value
                in_list = kind is _SEQUENCE_START
                key = _FOR_KEY

    def _finished(self, top: list[Any]) -> dict[Any, Any]:
        places = self._places
        data = top[0] if top else None
        if data is None:
            if places is not None:
                places.start = 0
            self._stop(None, "the file is empty", "write `key: value` lines")
        if not isinstance(data, dict):
            what = "a list" if isinstance(data, list) else "a single value"
            self._stop(None, f"the file holds {what}, not a mapping", "write `key: value` lines")
        if places is not None:
            places.data = data
            if places.findings:
                raise StopBuilding
        return data

    def _scalar(self, event: Any, container: Any, key: Any) -> Scalar:
        tag, text = event.tag, event.value
        try:
            if tag is None:
                return resolve_plain(text)
            if tag in ("!", _CORE_TAG + "str"):
                return str(text)
            name = tag.removeprefix(_CORE_TAG)
            if tag != name and name in _SCALAR_TAGS:
                types, called = _SCALAR_TAGS[name]
                value = resolve_plain(text)
                if not isinstance(value, types) or (name != "bool" and isinstance(value, bool)):
                    raise ValueError(f"this is not {called}, as !!{name} says || remove the tag")
                return float(value) if name == "float" and isinstance(value, int) else value
        except (ValueError, OverflowError) as error:
            message, _, fix = str(error).partition(" || ")
            self._note(event, message, fix, container, key)
            return None
        self._refuse_tag(event, container, key)
        return str(text)

    def _opened(self, event: Any, kind: EventKind, container: Any, key: Any) -> Any:
        """The empty list or mapping that begins with `event`."""
        is_map = kind is _MAPPING_START
        if event.tag not in (None, "!", _CORE_TAG + ("map" if is_map else "seq")):
            self._refuse_tag(event, container, key)
        if len(self._stack) >= MAX_DEPTH:
            self._stop(event, f"more than {MAX_DEPTH} levels of nesting",
                       "put a text that contains brackets in quotes")  # fmt: skip
        value: Any = {} if is_map else []
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        if self._places is not None:
            # The id may have belonged to a value that was refused, and is no more.
            self._places.of_items.pop(id(value), None)
            self._places.of_keys.pop(id(value), None)
        return value

    def _key(self, value: Any, event: Any, container: dict[Any, Any], starts: bool) -> Any:
        """What the mapping waits for, now that `value` was read as a key."""
        if starts or value.__class__ in (list, dict):
            self._note(event, "a list or a mapping cannot be a key",
                       "put the key in quotes if it is text", container, None)  # fmt: skip
            return _FOR_NOTHING
        if value == "<<" and not event.style:
            if id(container) not in self._merges:
                return _FOR_MERGE
            self._note(event, "a second `<<` in one mapping", "write `<<: [*one, *other]`",
                       container, "<<")  # fmt: skip
            return _FOR_NOTHING
        if value not in container:
            return value
        if self._places is None:
            raise LookAgain
        first = self._places.of_keys[id(container)][value][0]
        self._note(event, f"the key `{event.value}` was given already, at {{first}}",
                   "keep one of the two", container, value, first)  # fmt: skip
        return _FOR_NOTHING

    def _alias(self, event: Any, container: Any, key: Any) -> Any:
        name = event.anchor
        if name not in self._anchors:
            self._note(event, f"no `&{name}` above for the alias `*{name}`",
                       "put it in quotes if it is text", container, key)  # fmt: skip
            return None
        value = self._anchors[name]
        around = (container, *(outer for outer, _, _ in self._stack))
        if isinstance(value, dict | list) and any(value is outer for outer in around):
            self._note(event, f"the alias `*{name}` stands inside its own value",
                       "remove it", container, key)  # fmt: skip
            return None
        self._aliased += self._weights.of(value)
        if self._aliased > MAX_ALIASED:
            self._stop(event, f"the aliases add more than {MAX_ALIASED} values",
                       "write out what is meant")  # fmt: skip
        return value

    def _merge(self, container: Any) -> None:
        """Add what `<<` brought: explicit keys win, then whichever was merged first."""
        for merge in self._merges.pop(id(container), ()):
            sources = merge.value if isinstance(merge.value, list) else [merge.value]
            for source in sources:
                if not isinstance(source, dict):
                    self._note_at(merge.at, "`<<` takes a mapping, or a list of mappings",
                                  'write `<<: *name`, or put the key "<<" in quotes',
                                  container, "<<")  # fmt: skip
                    continue
                for key, value in source.items():
                    if key in container:
                        continue
                    container[key] = value
                    if self._places is not None:
                        inside = self._places.of_keys.setdefault(id(container), {})
                        inside[key] = self._places.of_keys[id(source)][key]

    def _refuse_tag(self, event: Any, container: Any, key: Any) -> None:
        tag = event.tag.replace(_CORE_TAG, "!!", 1)
        self._note(event, f"the tag `{tag[:60]}` is not allowed: a file holds plain data",
                   "remove it, or put a text that begins with `!` in quotes",
                   container, key)  # fmt: skip

    def _note(
        self, event: Any, message: str, fix: str, container: Any, key: Any,
        first_at: int | None = None,
    ) -> None:  # fmt: skip
        self._note_at(event.start_mark.index, message, fix, container, key, first_at)

    def _note_at(
        self, at: int, message: str, fix: str, container: Any, key: Any,
        first_at: int | None = None,
    ) -> None:  # fmt: skip
        if self._places is None:
            raise LookAgain
        # The outermost container is the builder's own list of one document.
        path = [name for _, _, name in self._stack[1:]]
        if container.__class__ is list and self._stack:
            path.append(len(container))
        elif key is not None and self._stack:
            path.append(key)
        shown = field_name(part for part in path if not isinstance(part, _Waiting))
        findings = self._places.findings
        findings.append(Finding(at, shown, message, fix, first_at))
        if len(findings) >= _MAX_FINDINGS:
            raise StopBuilding

    def _stop(self, event: Any, message: str, fix: str) -> NoReturn:
        if self._places is None:
            raise LookAgain
        at = event.start_mark.index if event is not None else self._places.start
        self._places.findings.append(Finding(at, "", message, fix))
        raise StopBuilding
