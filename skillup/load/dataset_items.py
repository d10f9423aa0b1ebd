"""Items of a dataset, as Langfuse keeps them: a message, what is expected, what was said before.

``{"id": …, "input": {"query": …}, "expected_output": {"response": …}, "metadata": {"history": […],
"message_index": …}}``; a JSON list, an export with `items` or `data`, or a line for each item.
Source of the format: Langfuse's dataset items (https://langfuse.com/docs/datasets).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.errors import InvalidFilesError, Problem
from skillup.load.dataset_history import NotAnItemError, Said, messages_of, place_of
from skillup.load.dataset_json import json_values
from skillup.load.file_text import read_text

QUERY = "query"
"""The variable that holds an item's message."""
_SAID = ("query", "question", "prompt", "message", "user_input", "input", "text", "content")
_EXPECTED = ("response", "answer", "output", "expected", "text", "content")
_EARLIER = ("history", "chat_history", "conversation_history", "messages")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


@dataclass(frozen=True, slots=True)
class DatasetItem:
    """One item."""

    id: str
    line: int
    query: str
    expected: str | None = None
    system: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    """As a case's `input.history`."""
    message_index: int | None = None
    tags: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    """Its texts and numbers by name: `input` first, then `metadata`."""


def read_items(path: Path, problems: list[Problem]) -> list[DatasetItem]:
    """The items in the file at `path`, archived ones left out; what is wrong goes to `problems`."""
    try:
        values = json_values(read_text(path), path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return []
    items: list[DatasetItem] = []
    unread: list[int] = []
    for line, value in values:
        try:
            item = _item(value, line, len(items) + 1, path)
        except NotAnItemError as trouble:
            problems.append(Problem(path, line, 1, "item", trouble.message, trouble.fix))
            continue
        if item is not None:
            items.append(item)
            if item.expected is None and _given(value) not in (None, "", {}, []):
                unread.append(line)
    if unread:
        where = f"in {len(unread)} of {len(items)} items"
        what = f"no text is found in `expected_output`: it is no check ({where})"
        fix = f"looked for in {', '.join(_EXPECTED)}; its fields are <<expected_output.NAME>>"
        problems.append(Problem(path, unread[0], 1, "item", what, fix, "warning"))
    if not items and not problems:
        problems.append(Problem(path, 1, 1, "", "there is no item in it", "add one a line"))
    return items


def _item(value: Any, line: int, number: int, path: Path) -> DatasetItem | None:
    if not isinstance(value, dict):
        raise NotAnItemError("not an item", 'write {"input": {"query": …}, …}')
    if str(value.get("status", "")).upper() == "ARCHIVED":
        return None
    if "input" not in value:
        raise NotAnItemError(
            "an item without `input`",
            'add it, such as {"query": …}; other tools\' suites: skillup import',
        )
    given, metadata = value["input"], value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    said = _said(given)
    if not said.query.strip():
        names = ", ".join(_SAID)
        raise NotAnItemError("there is no user message in `input`", f"looked for in {names}")
    earlier = next((metadata[name] for name in _EARLIER if name in metadata), None)
    index = metadata.get("message_index")
    index = index if isinstance(index, int) and not isinstance(index, bool) else None
    expected = _expected(_given(value))
    history = said.history if earlier is None else messages_of(earlier)
    if index is None and (earlier is not None or said.apart):
        index = place_of(history, said.query, expected)
    system = said.system or _first_text(metadata, ("system_prompt", "system"))
    tags = metadata.get("tags", [])
    return DatasetItem(
        id=_id(value.get("id"), f"{path.stem}-{number}"),
        line=line,
        query=said.query,
        expected=expected,
        system=system,
        history=history,
        message_index=index,
        tags=[str(tag) for tag in tags] if isinstance(tags, list) else [str(tags)],
        values={**_fields_of_expected(value), **dict(_values(given, metadata))},
    )


def _id(given: Any, default: str) -> str:
    if given is None:
        return default
    if isinstance(given, str) and given.strip():
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    raise NotAnItemError("its `id` is neither a text nor a whole number", "write a text, or none")


def _said(given: Any) -> Said:
    """The message under test, and what of the item's `input` came before it."""
    if isinstance(given, str):
        return Said(given)
    if isinstance(given, list):
        return Said.of_messages(messages_of(given), _system_in(given))
    if not isinstance(given, dict):
        return Said("")
    system = _first_text(given, ("system_prompt", "system"))
    earlier = next((given[name] for name in _EARLIER if isinstance(given.get(name), list)), None)
    query = _first_text(given, _SAID)
    if earlier is None:
        return Said(query or "", system=system)
    messages = messages_of(earlier)
    if query is not None:  # it stands beside the list: all of the list came before it
        return Said(query, messages, system or _system_in(earlier), apart=True)
    return Said.of_messages(messages, system or _system_in(earlier))


def _system_in(messages: list[Any]) -> str | None:
    found = [m for m in messages if isinstance(m, dict) and m.get("role") == "system"]
    return _first_text(found[0], ("content", "text")) if found else None


def _given(item: dict[str, Any]) -> Any:
    return item.get("expected_output", item.get("expectedOutput"))


def _fields_of_expected(item: dict[str, Any]) -> dict[str, str]:
    """Texts and numbers in it, for checks that look for them one by one."""
    fields = dict(_values(_given(item)))
    return {f"expected_output.{name}": value for name, value in fields.items()}


def _expected(value: Any) -> str | None:
    """The expected answer as text; None: there is none."""
    if isinstance(value, dict):
        named = (value[name] for name in _EXPECTED if name in value)
        found = next((text for text in map(_scalar, named) if text is not None), None)
        if found is None and len(value) == 1:
            found = _scalar(*value.values())
    elif isinstance(value, list):
        answers = [m["content"] for m in messages_of(value) if m["role"] == "assistant"]
        found = _scalar(answers[-1]) if answers else None
    else:
        found = _scalar(value)
    return found


def _scalar(value: Any) -> str | None:
    """A text, a number or a truth value, as text."""
    if isinstance(value, str):
        return value if value.strip() else None
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def _first_text(value: dict[str, Any], names: tuple[str, ...]) -> str | None:
    texts = (value.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _values(*sections: Any) -> Iterator[tuple[str, str]]:
    """Later ones do not outrank earlier ones: the dict that is made of them keeps the last."""
    for section in reversed(sections):
        if not isinstance(section, dict):
            continue
        for name, value in section.items():
            if not _NAME.match(str(name)) or not isinstance(value, str | int | float):
                continue
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield str(name), text
