"""Datasets: a case for each item, made with a case file when its trial begins.

Items are as Langfuse keeps them (https://langfuse.com/docs/datasets): ``{"id": …, "input":
{"query": …}, "expected_output": {"response": …}, "metadata": {"history": […]}}``.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillup.dataclass import frozen, mutable
from skillup.errors import InvalidFilesError, Problem
from skillup.load import semantics
from skillup.load.model import LoadedCase, paths_of
from skillup.load.yaml_reader import (
    Document,
    no_constant,
    read_text,
    read_yaml,
    refuse,
    unique_keys,
)
from skillup.schema.case import Case
from skillup.schema.suite import Dataset, Suite
from skillup.schema.templates import escape, written_in

QUERY = "query"  # The variable that holds an item's message
MESSAGE = ("query", "question", "prompt", "message")
EXPECTED = ("response", "answer", "output")
HISTORY = ("history", "chat_history", "messages")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_LEADS = frozenset({"prompt", "turns", "conversation", "transcript"})
OF_ITEM = frozenset({"id", "vars", "input", "expected_output"})  # In a case of some form
_IN_BLOCK = 256
_READ_AGAIN = 300  # Cases that are remembered: more than trials at once


class Items:
    """The valid items of a dataset, compressed; the case of each is made when it is asked for."""

    def __init__(self, template: Document) -> None:
        self._template, self._digests = template, bytearray()
        self.lines: MutableSequence[int] = array("L")
        self._start = hashlib.sha256(repr(template.data).encode(errors="surrogatepass"))
        self._blocks, self._open = list[bytes](), list[str]()
        self._read: tuple[int, list[str]] = -1, []  # The block that was asked for last
        self._made: dict[int, Case] = {}

    def add(self, text: str, item: DatasetItem) -> int:
        """Its index."""
        digest = self._start.copy()
        digest.update(repr(replace(item, line=0)).encode(errors="surrogatepass"))
        self._digests += digest.digest()[:8]
        self.lines.append(item.line)
        self._open.append(text)
        if len(self._open) == _IN_BLOCK:
            self._blocks.append(zlib.compress("\n".join(self._open).encode(), 1))
            self._open.clear()
        return len(self.lines) - 1

    def digest_of(self, index: int) -> str:
        """Of the template and of what the item adds to it."""
        return self._digests[index * 8 : index * 8 + 8].hex()

    def text_of(self, index: int) -> str:
        """Id and message, for `--item`."""
        item = self._item(index, "")
        return f"{item.id} {item.query}"

    def case_of(self, loaded: LoadedCase) -> Case:
        """As if it had been validated whole: the rest of it is that of cases of the same form."""
        if (case := self._made.get(loaded.index)) is None:
            data = _case_of(self._item(loaded.index, loaded.id), self._template.data)
            part = Case.model_validate({name: data[name] for name in OF_ITEM if name in data})
            own = {name: getattr(part, name) for name in part.model_fields_set}
            if (led := loaded.like.input.conversation) is not None:  # with the suite's defaults
                own["input"] = part.input.model_copy(update={"conversation": led})
            case = self._made[loaded.index] = loaded.like.model_copy(update=own)
            if len(self._made) > _READ_AGAIN:
                del self._made[next(iter(self._made))]
        return case

    def _item(self, index: int, default_id: str) -> DatasetItem:
        block, place = divmod(index, _IN_BLOCK)
        known, texts = self._read
        if block == len(self._blocks):
            texts = self._open
        elif block != known:
            texts = zlib.decompress(self._blocks[block]).decode().split("\n")
            self._read = block, texts
        return read_item(json.loads(texts[place]), self.lines[index], default_id)


def dataset_cases(
    suite: Suite, root: Path, variables: frozenset[str], problems: list[Problem]
) -> Iterator[LoadedCase]:
    """The cases of all the suite's datasets, in order; what is wrong goes into `problems`.

    Of items of one form the first is validated as a case: the others can differ in texts alone.
    """
    for dataset in suite.cases.datasets:
        path, total = root / dataset.path, 0
        forms: dict[Hashable, _Form] = {}
        try:
            template = _template(dataset, root)
            items, shared = Items(template), Document(path, "", template.data)
            for text, item in _read_items(path, problems):
                total, name = total + 1, _form_of(item)
                form = forms.get(name)
                if form is None:
                    written = replace(template, data=_case_of(item, template.data))
                    case, wrong = semantics.read_case(written, variables, suite, root)
                    if case is not None:
                        own = Document(path, "", written.data, line=item.line)
                        like = LoadedCase(case, own, items, items.add(text, item))
                        yield like
                        if paths_of(like)[0] is not like:  # each is a case of its own
                            name = None
                    form = _Form(case, wrong, item.line)
                    forms[object() if name is None else name] = form
                elif form.like is not None:
                    yield LoadedCase(form.like, shared, items, items.add(text, item), item.id)
                form.items += 1
        except InvalidFilesError as error:
            problems.extend(error.problems)
        found: dict[Problem, tuple[int, int]] = {}
        for form in forms.values():
            for problem in form.problems:
                line, having = found.get(problem, (form.line, 0))
                found[problem] = line, having + form.items
        for problem, (line, having) in found.items():
            if not template.text or having < total:  # else it is the case file's
                message = f"{problem.message} (in {having} of {total} items)"
                problem = replace(problem, file=path, line=line, column=1, message=message)
            problems.append(problem)


@mutable
class _Form:
    """Items of which the cases are valid, or not, for the same reasons."""

    like: Case | None  # Of the first
    problems: list[Problem]
    line: int
    items: int = 0


def _form_of(item: DatasetItem) -> Hashable:
    """What decides, with the template, whether the item's case is valid; None: more of it does."""
    if any(len(message) > 2 for message in item.history):
        return None
    given = (item.expected, item.system, item.message_index)
    return *(one is None for one in given), not item.history, *item.values, None, *item.tags


def _template(dataset: Dataset, root: Path) -> Document:
    if dataset.case is None:
        return Document(root / dataset.path, "", {})
    template = read_yaml(root / dataset.case)
    given = template.data.get("input")
    leads = isinstance(given, dict) and not _LEADS.isdisjoint(given)
    if leads and QUERY not in written_in(json.dumps(given, default=str, ensure_ascii=False)):
        message = f"the items' message is never sent: nothing here is <<{QUERY}>>"
        fix = f"write <<{QUERY}>> where the message belongs, or leave `input` without turns"
        raise InvalidFilesError([template.problem(("input",), message, fix)])
    return template


def _case_of(item: DatasetItem, template: Mapping[Any, Any]) -> dict[str, Any]:
    """The case for `item`: `template`, with what it leaves open filled in from the item.

    The message is `<<query>>` wherever the template puts it; without an `input` of its own it is
    the prompt. The template's words outrank the item's.
    """
    data = {**template, "id": item.id}
    own, tags, given = data.get("vars"), data.get("tags", []), data.get("input", {})
    known = {QUERY: item.query, **({"expected_output": item.expected} if item.expected else {})}
    data["vars"] = {**item.values, **known, **(own if isinstance(own, dict) else {})}
    if item.tags:
        data["tags"] = [*(tags if isinstance(tags, list) else [tags]), *item.tags]
    if not isinstance(given, dict):
        return data
    # What was said once is no template.
    history = [{**message, "literal": True} for message in item.history]
    system = item.system and escape(item.system)
    of_item = {"history": history, "message_index": item.message_index, "system": system}
    given = {**{name: value for name, value in of_item.items() if value not in (None, [])}, **given}
    data["input"] = given
    if _LEADS.isdisjoint(given):
        given["prompt"] = f"<<{QUERY}>>"
    if item.expected is None:
        return data
    if "prompt" in given:
        data.setdefault("expected_output", escape(item.expected))
    turns = given["turns"] if isinstance(given.get("turns"), list) else []
    for place, turn in enumerate(turns):
        # The expected answer belongs to the message under test, unless it has its own.
        full = turn if isinstance(turn, dict) else {"content": turn}
        if isinstance(full.get("content"), str) and QUERY in written_in(full["content"]):
            answered = {"expected_output": escape(item.expected), **full}
            given["turns"] = [*turns[:place], answered, *turns[place + 1 :]]
            break
    return data


@frozen
class DatasetItem:
    id: str
    line: int
    query: str
    expected: str | None
    system: str | None
    history: list[dict[str, Any]]  # As a case's `input.history`
    message_index: int | None
    tags: list[str]
    values: dict[str, str]
    """Its texts and numbers by name: `input` first, then `metadata`."""


class NotAnItemError(Exception):
    """What is wrong with a value that no case can be made of, and what would be right."""


def _read_items(path: Path, problems: list[Problem]) -> Iterator[tuple[str, DatasetItem]]:
    """The items in the file and their JSON, but archived ones. Raises InvalidFilesError."""
    wrong, unused, count = list[Problem](), list[Problem](), 0
    for number, (line, text, value) in enumerate(_json_values(read_text(path), path), start=1):
        if isinstance(value, dict) and str(value.get("status", "")).upper() == "ARCHIVED":
            continue
        try:
            item = read_item(value, line, f"{path.stem}-{count + 1}")
        except NotAnItemError as error:
            wrong.append(Problem(path, line, 1, f"item {number}", *error.args))
            continue
        count += 1
        given = value.get("expected_output", value.get("expectedOutput"))
        if item.expected is None and given not in (None, "", {}, []):
            what = "no text is found in `expected_output`: it is no check"
            fix = f"looked for in {', '.join(EXPECTED)}; its fields are <<expected_output.NAME>>"
            unused.append(Problem(path, line, 1, f"item {number}", what, fix, "warning"))
        yield text, item
    wrong += unused[:1]
    if not count and not wrong:
        wrong.append(Problem(path, 1, 1, "", "there is no item in it", "add one a line"))
    problems += wrong


_decode = json.JSONDecoder(parse_constant=no_constant, object_pairs_hook=unique_keys).decode


def _json_values(text: str, path: Path) -> Iterator[tuple[int, str, Any]]:
    """What a list, or an object's `items` or `data` hold (at line 1), or values on their lines.

    Each with its JSON, which is one line.
    """

    def read(text: str, line: int) -> Any:
        try:
            return _decode(text)
        except (ValueError, RecursionError) as error:
            fix = "an item is an object; a file holds a list of them, or one a line"
            more, at = getattr(error, "lineno", 1), getattr(error, "colno", 1)
            deep = isinstance(error, RecursionError)
            what = "nested too deeply" if deep else getattr(error, "msg", None) or str(error)
            refuse(path, f"not JSON: {what}", fix, line + more - 1, at)

    stripped = text.strip()
    if path.suffix == ".json" or stripped.startswith("[") or "\n" not in stripped:
        if not stripped:
            return
        before = text[: len(text) - len(text.lstrip())].count("\n")
        value = read(text, 1)
        listed = value.get("items", value.get("data")) if isinstance(value, dict) else value
        found = listed if isinstance(listed, list) else [value]
        line = 1 if isinstance(listed, list) else 1 + before
        yield from ((line, json.dumps(one), one) for one in found)
        return
    del stripped
    line = start = 0
    while start <= len(text):
        end = text.find("\n", start)
        own, line = text[start : end if end >= 0 else None], line + 1
        start = end + 1 if end >= 0 else len(text) + 1
        if own.strip():
            yield line, own, read(own, line)


def read_item(value: Any, line: int, default_id: str) -> DatasetItem:
    """The item that `value` holds. Raises NotAnItemError."""
    if not isinstance(value, dict) or "input" not in value:
        fix = 'write {"input": {"query": …}, …}; other tools\' suites: skillup import'
        raise NotAnItemError("an item without `input`", fix)
    given, metadata = value["input"], value.get("metadata")
    if not isinstance(item_id := value.get("id") or default_id, str | int):
        raise NotAnItemError("its `id` is neither a text nor a whole number", "write a text")
    query = given if isinstance(given, str) else _first(given, MESSAGE)
    raw = given if isinstance(given, list) else _first(given, HISTORY, lambda one: one)
    history, beside = _messages_of(raw or []), query is not None and raw is not None
    if query is None:
        # The last user message is the one under test; what stands before it is history.
        place = _last_user(history)
        query = history[place]["content"] if place < len(history) else None
        history = history[:place]
    if query is None or not query.strip():
        fix = f"looked for in {', '.join(MESSAGE)}"
        raise NotAnItemError("there is no user message in `input`", fix)
    earlier = _first(metadata, HISTORY, lambda one: one)
    history = history if earlier is None else _messages_of(earlier)
    answer = value.get("expected_output", value.get("expectedOutput"))
    only = list(answer) if isinstance(answer, dict) and len(answer) == 1 else []
    expected = _scalar(answer) or _first(answer, (*EXPECTED, *only))
    about = metadata if isinstance(metadata, dict) else {}
    index, tags = about.get("message_index"), about.get("tags", [])
    if type(index) is not int:
        is_past = earlier is not None or beside
        index = _place_of(history, query, expected) if is_past else None
    spoken = [m for m in raw or () if isinstance(m, dict) and m.get("role") == "system"]
    answered = {f"expected_output.{k}": text for k, text in _texts_of(answer).items()}
    return DatasetItem(
        id=str(item_id),
        line=line,
        query=query,
        expected=expected,
        system=_first(spoken[0], ("content",)) if spoken else None,
        history=history,
        message_index=index,
        tags=[str(tag) for tag in (tags if isinstance(tags, list) else [tags])],
        values={**answered, **_texts_of(metadata), **_texts_of(given)},
    )


def _scalar(value: Any) -> str | None:
    """A text, a number or a truth value, as text."""
    if isinstance(value, str):
        return value if value.strip() else None
    return json.dumps(value) if isinstance(value, bool | int | float) else None


def _first(section: Any, names: Sequence[str], read: Callable[[Any], Any] = _scalar) -> Any:
    """What `read` gives of the first that it gives something of."""
    found = (read(section.get(name)) for name in names if isinstance(section, dict))
    return next((one for one in found if one is not None), None)


def _texts_of(section: Any) -> dict[str, str]:
    """The texts and numbers in it that a variable can be named after."""
    pairs = section.items() if isinstance(section, dict) else ()
    texts = {name: value if isinstance(value, str) else _scalar(value) for name, value in pairs}
    return {name: text for name, text in texts.items() if text is not None and _NAME.match(name)}


_ROLES = {"human": "user", "ai": "assistant"} | {r: r for r in ("user", "assistant", "tool")}


def _messages_of(value: Any) -> list[dict[str, Any]]:
    """Messages as OpenAI's chat API writes them, as a case's `input.history`."""
    if not isinstance(value, list):
        raise NotAnItemError("the history is not a list", "write a list of {role, content}")
    messages = []
    for entry in value:
        role = str(entry.get("role") if isinstance(entry, dict) else None).casefold()
        if role in _ROLES:
            messages.append(_message(_ROLES[role], entry))
        elif role != "system":
            raise NotAnItemError("a message of the history is not {role, content}", "rewrite it")
    return messages


def _message(role: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    content = entry.get("content")
    if isinstance(content, list):  # of blocks
        texts = [block.get("text") if isinstance(block, dict) else block for block in content]
        content = "\n\n".join(text for text in texts if isinstance(text, str))
    message: dict[str, Any] = {"role": role, "content": content or ""}
    if isinstance(entry.get("message_index"), int):
        message["message_index"] = entry["message_index"]
    if role == "tool" and entry.get("tool_call_id"):
        message["call_id"] = str(entry["tool_call_id"])
    calls = entry.get("tool_calls")
    for call in calls if role == "assistant" and isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        arguments = function.get("arguments", {})
        try:
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError:
            arguments = {"input": arguments}
        made = {"name": function["name"], "arguments": arguments}
        made |= {"id": str(call["id"])} if call.get("id") else {}
        message.setdefault("tool_calls", []).append(made)
    return message


def _last_user(messages: Sequence[Mapping[str, Any]]) -> int:
    return max((n for n, m in enumerate(messages) if m["role"] == "user"), default=len(messages))


def _place_of(messages: list[dict[str, Any]], query: str, expected: str | None) -> int | None:
    """The `message_index` of the message under test among those before it; None: it is not there.

    It is the last user message, or the last one with the expected answer right behind it.
    """
    for place in reversed(range(len(messages))):
        message = messages[place]
        answers = [m["content"] for m in messages[place + 1 :] if m["role"] != "tool"]
        answered = answers and expected and answers[0].split() == expected.split()
        says_it = message["role"] == "user" and message["content"].split() == query.split()
        if says_it and (answered or place == _last_user(messages)):
            index: int = message.get("message_index", place)
            return index
    return None
