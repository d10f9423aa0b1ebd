"""Items of a dataset, as Langfuse keeps them: a message, what is expected, what was said before.

``{"id": …, "input": {"query": …}, "expected_output": {"response": …}, "metadata": {"history": […],
"message_index": …}}``; a JSON list, an export with `items` or `data`, or a line for each item.
Source of the format: Langfuse's dataset items (https://langfuse.com/docs/datasets).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from skillup.errors import InvalidFilesError, Problem
from skillup.load.file_text import line_and_column, read_text

# The messages of a dataset item in the wire forms that are found, as a case's `input.history`.

_ROLES = {
    "user": "user", "human": "user", "customer": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "agent": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
_ASKED = ("query", "question", "user", "human", "input")
_ANSWERED = ("response", "answer", "assistant", "ai", "output")


class NotAnItemError(Exception):
    """A value that no case can be made of: what is wrong with it, and what would be right."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Said:
    """What an item's `input` holds."""

    query: str
    history: list[dict[str, Any]] = field(default_factory=list)
    system: str | None = None
    apart: bool = False
    """The query stands beside the history, which may hold it again."""

    @classmethod
    def of_messages(cls, messages: list[dict[str, Any]], system: str | None) -> Said:
        """The last user message is the one under test; what stands before it is history."""
        for place in range(len(messages) - 1, -1, -1):
            if messages[place]["role"] == "user":
                return cls(messages[place]["content"], messages[:place], system)
        return cls("", messages, system)


def messages_of(value: Any) -> list[dict[str, Any]]:
    """Messages with a role, or pairs of a question and an answer; what is neither is passed over.

    Raises NotAnItemError for what is no list.
    """
    if not isinstance(value, list):
        raise NotAnItemError("the history is not a list", "write a list of {role, content}")
    return [message for entry in value for message in _messages(entry)]


def place_of(messages: list[dict[str, Any]], query: str, expected: str | None) -> int | None:
    """The `message_index` of the message under test among those before it; None: it is not there.

    Recorded histories often go on to its answer, or to the conversation's end. It is the last user
    message if that says the same, or the last one with the expected answer right behind it; a short
    message that was said in another place, too, is none.
    """
    last = True
    for place in range(len(messages) - 1, -1, -1):
        if messages[place]["role"] != "user":
            continue
        answer = next((m for m in messages[place + 1 :] if m["role"] != "tool"), None)
        answered = expected is not None and answer is not None and _same(answer, expected)
        if _same(messages[place], query) and (last or answered):
            index: int = messages[place].get("message_index", place)
            return index
        last = False
    return None


def _same(message: dict[str, Any], text: str) -> bool:
    return " ".join(message["content"].split()) == " ".join(text.split())


def _messages(entry: Any) -> Iterator[dict[str, Any]]:
    if isinstance(entry, list):
        pairs = zip(("user", "assistant"), entry, strict=False)
        yield from ({"role": role, "content": text} for role, text in pairs if _is_text(text))
        return
    if not isinstance(entry, dict):
        return
    index = entry.get("message_index", entry.get("index"))
    placed = {"message_index": index} if isinstance(index, int) else {}
    who = entry.get("role", entry.get("type", entry.get("sender")))
    role = _ROLES.get(str(who).casefold()) if who is not None else None
    if role is not None:
        yield {**_message(role, entry), **placed}
        return
    for kind, names in (("user", _ASKED), ("assistant", _ANSWERED)):
        text = next((entry[name] for name in names if _is_text(entry.get(name))), None)
        if text is not None:
            yield {"role": kind, "content": text, **placed}


def _message(role: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    content = _text(entry.get("content", entry.get("text", entry.get("message"))))
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "tool":
        call_id = entry.get("tool_call_id", entry.get("call_id"))
        return {**message, "call_id": str(call_id)} if call_id else message
    calls = entry.get("tool_calls")
    if role == "assistant" and isinstance(calls, list):
        made = [_call(call) for call in calls if isinstance(call, dict)]
        message["tool_calls"] = [call for call in made if call is not None]
    return message


def _call(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """A call as OpenAI's chat API writes it, or as a case does."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    name, arguments = inner.get("name"), inner.get("arguments", inner.get("input", {}))
    if not _is_text(name):
        return None
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"input": arguments}
    kept = arguments if isinstance(arguments, dict) else {"input": arguments}
    made = {"name": name, "arguments": kept}
    return {"id": str(call["id"]), **made} if call.get("id") else made


def _text(content: Any) -> str:
    """A text; of a list of blocks, the texts among them."""
    if isinstance(content, list):
        texts = [b.get("text") if isinstance(b, dict) else b for b in content]
        return "\n\n".join(text for text in texts if isinstance(text, str))
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


# The values of a JSON list or of JSON lines, each with the line that it begins on.

_SPACE = re.compile(r"[\s,]*")


class _NotAValueError(Exception):
    """What begins at `offset` is no value that can be used."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def json_values(text: str, path: Path) -> list[tuple[int, Any]]:
    """The elements of a list, of an object's `items` or `data`, or the values one after another.

    Raises InvalidFilesError with the place where what is no JSON begins: what comes after it may
    be its end, or another value. Also for numbers and nesting without measure, NaN, and keys that
    an object has twice.
    """
    start = _SPACE.match(text)
    offset = start.end() if start else 0
    try:
        if text[offset : offset + 1] == "[":
            return list(_values(text, offset + 1, "]"))
        values = list(_values(text, 0, ""))
    except _NotAValueError as error:
        line, column = line_and_column(text, error.offset)
        fix = "an item is an object; a file holds a list of them, or one a line"
        problem = Problem(path, line, column, "", f"not JSON: {error}", fix)
        raise InvalidFilesError([problem]) from None
    if len(values) == 1 and isinstance(values[0][1], dict):
        listed = next((values[0][1].get(k) for k in ("items", "data") if k in values[0][1]), None)
        if isinstance(listed, list):
            return [(1, value) for value in listed]
    return values


def _values(text: str, offset: int, end: str) -> Iterator[tuple[int, Any]]:
    decoder = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_object)
    line, counted = 1, 0
    while True:
        space = _SPACE.match(text, offset)
        offset = space.end() if space else offset
        if offset >= len(text):
            if end:
                raise _NotAValueError("the list has no end", max(0, len(text) - 1))
            return
        if end and text[offset] == end:
            return
        line, counted = line + text.count("\n", counted, offset), offset
        try:
            value, following = decoder.raw_decode(text, offset)
        except json.JSONDecodeError as error:
            raise _NotAValueError(error.msg, offset) from None
        except RecursionError:
            raise _NotAValueError("nested too deeply", offset) from None
        except ValueError as error:  # also a whole number of thousands of digits
            raise _NotAValueError(str(error).partition(";")[0], offset) from None
        offset = following
        yield line, value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no value of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key `{twice}` is there twice")
    return made


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
        values={**_fields_of_expected(value), **dict(_values_dataset_items(given, metadata))},
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
    fields = dict(_values_dataset_items(_given(item)))
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


def _values_dataset_items(*sections: Any) -> Iterator[tuple[str, str]]:
    """Later ones do not outrank earlier ones: the dict that is made of them keeps the last."""
    for section in reversed(sections):
        if not isinstance(section, dict):
            continue
        for name, value in section.items():
            if not _NAME.match(str(name)) or not isinstance(value, str | int | float):
                continue
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield str(name), text
