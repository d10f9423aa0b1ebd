"""The items of a dataset's file, in the forms that are found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from skillup.errors import Problem
from skillup.load.yaml_reader import line_and_column, read_text, refuse

_MESSAGE = ("query", "question", "prompt", "message", "user_input", "input", "text", "content")
_EXPECTED = ("response", "answer", "output", "expected", "text", "content")
_HISTORY = ("history", "chat_history", "conversation_history", "messages")
_SYSTEM = ("system_prompt", "system")
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


class _NotAnItemError(Exception):
    """A value that no case can be made of: what is wrong with it, and what would be right."""


def read_items(path: Path, problems: list[Problem]) -> list[DatasetItem]:
    """The items in the file at `path`, archived ones left out; what is wrong goes to `problems`.

    Raises InvalidFilesError for a file that is no JSON.
    """
    before = len(problems)
    items: list[DatasetItem] = []
    without_text: list[int] = []
    for line, value in json_values(read_text(path), path):
        if isinstance(value, dict) and str(value.get("status", "")).upper() == "ARCHIVED":
            continue
        try:
            items.append(_item(value, line, f"{path.stem}-{len(items) + 1}"))
        except _NotAnItemError as error:
            problems.append(Problem(path, line, 1, "item", *error.args))
            continue
        if items[-1].expected is None and _expected_output(value) not in (None, "", {}, []):
            without_text.append(line)
    if without_text:
        where = f"in {len(without_text)} of {len(items)} items"
        what = f"no text is found in `expected_output`: it is no check ({where})"
        fix = f"looked for in {', '.join(_EXPECTED)}; its fields are <<expected_output.NAME>>"
        problems.append(Problem(path, without_text[0], 1, "item", what, fix, "warning"))
    if not items and len(problems) == before:
        problems.append(Problem(path, 1, 1, "", "there is no item in it", "add one a line"))
    return items


def json_values(text: str, path: Path) -> list[tuple[int, Any]]:
    """The elements of a list, of an object's `items` or `data`, or the values one after another.

    Each with its line. Raises InvalidFilesError with the place where what is no JSON begins.
    """
    start = len(text) - len(text.lstrip())
    is_list = text[start : start + 1] == "["
    values = list(_values(text, start + is_list, "]" if is_list else "", path))
    if len(values) == 1 and not is_list and isinstance(values[0][1], dict):
        listed = next((values[0][1].get(k) for k in ("items", "data") if k in values[0][1]), None)
        if isinstance(listed, list):
            return [(1, value) for value in listed]
    return values


def _values(text: str, offset: int, end: str, path: Path) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object)
    blank = re.compile(r"[\s,]*")
    line, counted = 1, 0
    while True:
        space = blank.match(text, offset)
        offset = space.end() if space else offset
        if text[offset : offset + 1] == end:
            return
        line, counted = line + text.count("\n", counted, offset), offset
        try:
            value, following = decoder.raw_decode(text, offset)
        except (ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            what = "nested too deeply" if deep else getattr(error, "msg", None) or str(error)
            what = "the list has no end" if offset == len(text) else what
            fix = "an item is an object; a file holds a list of them, or one a line"
            refuse(path, f"not JSON: {what}", fix, *line_and_column(text, offset))
        offset = following
        yield line, value


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no value of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{twice}` is there twice")
    return made


def _item(value: Any, line: int, default_id: str) -> DatasetItem:
    if not isinstance(value, dict) or "input" not in value:
        fix = 'write {"input": {"query": …}, …}; other tools\' suites: skillup import'
        raise _NotAnItemError("an item without `input`", fix)
    given, metadata = value["input"], value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    item_id = default_id if value.get("id") is None else value["id"]
    if not isinstance(item_id, str | int) or isinstance(item_id, bool) or not str(item_id).strip():
        fix = "write a text, or none"
        raise _NotAnItemError("its `id` is neither a text nor a whole number", fix)
    fields = given if isinstance(given, dict) else {}
    query = given if isinstance(given, str) else _first_text(fields, _MESSAGE)
    raw = given if isinstance(given, list) else _first(fields, _HISTORY)
    history, beside = _messages_of(raw or []), query is not None and raw is not None
    if query is None:
        # The last user message is the one under test; what stands before it is history.
        place = _last_user(history)
        query = history[place]["content"] if place < len(history) else None
        history = history[:place]
    if query is None or not query.strip():
        fix = f"looked for in {', '.join(_MESSAGE)}"
        raise _NotAnItemError("there is no user message in `input`", fix)
    earlier = _first(metadata, _HISTORY)
    history = history if earlier is None else _messages_of(earlier)
    expected = _expected(_expected_output(value))
    index = metadata.get("message_index")
    if not isinstance(index, int) or isinstance(index, bool):
        is_past = earlier is not None or beside
        index = _place_of(history, query, expected) if is_past else None
    system = next((m for m in raw or () if isinstance(m, dict) and m.get("role") == "system"), {})
    tags = metadata.get("tags", [])
    of_expected = _texts_of(_expected_output(value))
    return DatasetItem(
        id=str(item_id),
        line=line,
        query=query,
        expected=expected,
        system=_first_text(fields, _SYSTEM)
        or _first_text(system, ("content", "text"))
        or _first_text(metadata, _SYSTEM),
        history=history,
        message_index=index,
        tags=[str(tag) for tag in tags] if isinstance(tags, list) else [str(tags)],
        values={
            **{f"expected_output.{name}": text for name, text in of_expected.items()},
            **_texts_of(metadata),
            **_texts_of(given),
        },
    )


def _expected_output(item: dict[str, Any]) -> Any:
    return item.get("expected_output", item.get("expectedOutput"))


def _expected(value: Any) -> str | None:
    """The expected answer as text; None: there is none."""
    if isinstance(value, dict):
        texts = (_scalar(value[name]) for name in _EXPECTED if name in value)
        found = next((text for text in texts if text is not None), None)
        return _scalar(*value.values()) if found is None and len(value) == 1 else found
    if isinstance(value, list):
        answers = [m["content"] for m in _messages_of(value) if m["role"] == "assistant"]
        value = answers[-1] if answers else None
    return _scalar(value)


def _scalar(value: Any) -> str | None:
    """A text, a number or a truth value, as text."""
    if isinstance(value, str):
        return value if value.strip() else None
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def _first(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((value[name] for name in names if value.get(name) is not None), None)


def _first_text(value: Mapping[str, Any], names: Sequence[str]) -> str | None:
    texts = (value.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _texts_of(section: Any) -> dict[str, str]:
    """The texts and numbers in it that a variable can be named after."""
    pairs = section.items() if isinstance(section, dict) else ()
    texts = ((name, value if isinstance(value, str) else _scalar(value)) for name, value in pairs)
    return {name: text for name, text in texts if text is not None and _NAME.match(name)}


# The messages of an item in the wire forms that are found, as a case's `input.history`.

_ROLES = {
    "user": "user", "human": "user", "customer": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "agent": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
_PAIRS = (
    ("user", ("query", "question", "user", "human", "input")),
    ("assistant", ("response", "answer", "assistant", "ai", "output")),
)


def _messages_of(value: Any) -> list[dict[str, Any]]:
    """Messages with a role, or pairs of a question and an answer; others are passed over."""
    if not isinstance(value, list):
        raise _NotAnItemError("the history is not a list", "write a list of {role, content}")
    return [message for entry in value for message in _messages(entry)]


def _messages(entry: Any) -> Iterator[dict[str, Any]]:
    if isinstance(entry, list):
        entry = dict(zip(("user", "assistant"), entry, strict=False))
    if not isinstance(entry, dict):
        return
    index = entry.get("message_index", entry.get("index"))
    placed = {"message_index": index} if isinstance(index, int) else {}
    role = _ROLES.get(str(_first(entry, ("role", "type", "sender"))).casefold())
    if role is not None:
        yield {**_message(role, entry), **placed}
        return
    for kind, names in _PAIRS:
        text = _first_text(entry, names)
        if text is not None:
            yield {"role": kind, "content": text, **placed}


def _message(role: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    content = _first(entry, ("content", "text", "message"))
    if isinstance(content, list):  # of blocks
        texts = [block.get("text") if isinstance(block, dict) else block for block in content]
        content = "\n\n".join(text for text in texts if isinstance(text, str))
    if not isinstance(content, str | None):
        content = json.dumps(content, ensure_ascii=False)
    message: dict[str, Any] = {"role": role, "content": content or ""}
    call_id = _first(entry, ("tool_call_id", "call_id"))
    if role == "tool" and call_id:
        message["call_id"] = str(call_id)
    calls = entry.get("tool_calls")
    if role == "assistant" and isinstance(calls, list):
        message["tool_calls"] = [made for call in calls if (made := _call(call))]
    return message


def _call(call: Any) -> dict[str, Any] | None:
    """A call as OpenAI's chat API writes it, or as a case does."""
    inner = call.get("function", call) if isinstance(call, dict) else {}
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        return None
    arguments = inner.get("arguments", inner.get("input", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"input": arguments}
    kept = arguments if isinstance(arguments, dict) else {"input": arguments}
    made = {"name": inner["name"], "arguments": kept}
    return {"id": str(call["id"]), **made} if call.get("id") else made


def _last_user(messages: Sequence[Mapping[str, Any]]) -> int:
    places = [n for n, message in enumerate(messages) if message["role"] == "user"]
    return places[-1] if places else len(messages)


def _place_of(messages: list[dict[str, Any]], query: str, expected: str | None) -> int | None:
    """The `message_index` of the message under test among those before it; None: it is not there.

    It is the last user message if that says the same, or the last one with the expected answer
    right behind it; a short message that was said in another place, too, is none.
    """
    for place in reversed(range(len(messages))):
        answer = next((m for m in messages[place + 1 :] if m["role"] != "tool"), None)
        answered = expected is not None and answer is not None and _same(answer, expected)
        is_under_test = place == _last_user(messages) or answered
        message = messages[place]
        if message["role"] == "user" and _same(message, query) and is_under_test:
            index: int = message.get("message_index", place)
            return index
    return None


def _same(message: Mapping[str, Any], text: str) -> bool:
    return " ".join(message["content"].split()) == " ".join(text.split())
