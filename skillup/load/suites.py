"""Reading suites, their cases and datasets, and gathering every problem on the way.

Datasets are as Langfuse keeps them (https://langfuse.com/docs/datasets): ``{"id": …, "input":
{"query": …}, "expected_output": {"response": …}, "metadata": {"history": […]}}``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.frozen import frozen
from skillup.load import compat, discover, semantics
from skillup.load.model import Loaded, LoadedCase, LoadedSuite, paths_of
from skillup.load.yaml_reader import (
    Document,
    Loc,
    no_constant,
    problems_from,
    read_text,
    read_yaml,
    refuse,
    unique_keys,
)
from skillup.schema.suite import Dataset, Suite
from skillup.schema.templates import escape, written_in


def load_paths(paths: Sequence[Path], *, variables: Iterable[str] = ()) -> Loaded:
    """All suites that `paths` mean, and what is wrong; `variables`: names that `--var` defines.

    Raises UsageError where a path means no suite at all.
    """
    problems: list[Problem] = []
    suites: dict[str, LoadedSuite] = {}
    for request in discover.find_suites(paths):
        suite = _load_suite(request, frozenset(variables), problems)
        if suite is None:
            continue
        other = suites.setdefault(suite.name, suite)
        if other is not suite:
            message = f"`{suite.name}` is the name of {other.path} already"
            fix = "give each suite a `name` of its own: results are distinguished by it"
            problems.append(suite.document.problem(("name",), message, fix))
    # The files in the order they were read; within each, from top to bottom.
    files = {path: number for number, path in enumerate({p.file: None for p in problems})}
    problems.sort(key=lambda p: (files[p.file], p.line, p.column))
    return Loaded(tuple(suites.values()), tuple(problems))


def _read(path: Path, problems: list[Problem]) -> Document | None:
    try:
        return read_yaml(path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return None


def _load_suite(
    request: discover.SuiteRequest, variables: frozenset[str], problems: list[Problem]
) -> LoadedSuite | None:
    document: Document | None
    if (path := request.path).suffix in discover.DATASET_ENDINGS:  # a dataset by itself
        data = {"name": path.stem, "cases": {"files": [], "datasets": [{"path": path.name}]}}
        document = Document(path, "", data)
    elif (document := _read(path, problems)) is None:
        return None
    root = discover.suite_root(request.path)
    valid = True
    try:
        if document.data.get("schema_version") == compat.VERSION:
            suite = compat.read_suite(document, problems)
        else:
            suite = Suite.model_validate(document.data)
        problems.extend(semantics.suite_problems(suite, document, root))
    except ValidationError as error:
        problems.extend(problems_from(error, document, Suite))
        # The cases are still looked at: all problems are reported at once.
        suite, valid = Suite(), False
    templates = {(root / d.case).resolve() for d in suite.cases.datasets if d.case is not None}
    files = _case_files(suite, document, root, templates, problems)
    if request.only:
        files = [file for file in files if any(file.is_relative_to(only) for only in request.only)]
        # A case asked for by name need not be listed.
        files += [p for p in request.only if p.is_file() and p not in {*files, *templates}]
    if not (files or request.only or suite.cases.files is not None or suite.cases.datasets):
        problems.append(document.problem(("cases",), "no case files beside it or in cases/"))
    cases: list[LoadedCase] = []
    for file in files:
        if (own := _read(file, problems)) is not None:
            theirs = compat.VERSION in (suite.schema_version, own.data.get("schema_version"))
            case, found = semantics.read_case(own, variables, suite, root, theirs=theirs)
            problems.extend(found)
            cases += [LoadedCase(case, own)] if case is not None else []
    all_read = len(cases) == len(files) and not request.only
    if suite.cases.datasets and (not request.only or not templates.isdisjoint(request.only)):
        cases.extend(dataset_cases(suite, document, root, variables, problems))

    cases = [path for loaded in cases for path in paths_of(loaded)]
    problems.extend(semantics.id_problems(cases, all_read))
    if not valid:
        return None
    problems.extend(semantics.skill_name_problems(suite, root, cases))
    return LoadedSuite(suite.name or root.name, suite, document, root, tuple(cases))


def _case_files(
    suite: Suite, document: Document, root: Path, templates: Set[Path], problems: list[Problem]
) -> list[Path]:
    """Those of `cases.files`, in that order, else by name but for datasets' `templates`."""
    directory, found = document.path.resolve().parent, list[Path]()
    for index, pattern in enumerate(suite.cases.files or ()):
        loc = ("cases", "files", index)
        outside = list(semantics.outside_problem(document, loc, pattern, root))
        matches = [] if outside else _matches(pattern, root) or _matches(pattern, directory)
        found += matches
        problems += outside
        if not matches and not outside:
            what = "matches no file" if {*pattern} & {*"*?["} else "no such file"
            message = f"{what}: {pattern} (paths start from {root.name}/)"
            problems.append(document.problem(loc, message))
    if suite.cases.files is None:
        found = discover.cases_beside(directory)
    # A folder once, not each of its thousand files.
    folders = {folder: folder.resolve() for folder in {path.parent for path in found}}
    real = [p.resolve() if p.is_symlink() else folders[p.parent] / p.name for p in found]
    return [p for p in dict.fromkeys(real) if suite.cases.files is not None or p not in templates]


def _matches(pattern: str, root: Path) -> list[Path]:
    if (root / pattern).is_file():
        return [root / pattern]
    try:
        return sorted(path for path in root.glob(pattern) if path.is_file())
    # A glob that pathlib does not know, such as `a**`, or of more parts than it can follow.
    except (ValueError, NotImplementedError, RecursionError):
        return []


# Datasets: a case for each item, made with a case file.

QUERY = "query"  # The variable that holds an item's message
MESSAGE = ("query", "question", "prompt", "message")
EXPECTED = ("response", "answer", "output")
HISTORY = ("history", "chat_history", "messages")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_LEADS = frozenset({"prompt", "turns", "conversation", "transcript"})


@frozen
class Sampling:
    item: str | None = None  # Only those whose id or message has this text in it, in any case
    size: int | None = None  # At most so many items of each suite
    seed: int = 0  # The same seed takes the same items of the same dataset, on any machine


def sampled(suites: Sequence[LoadedSuite], sampling: Sampling) -> list[LoadedSuite]:
    """`suites` with only the items that are taken.

    `--item` asks for items: other cases are left out. A sample is of items: other cases stay.
    Raises UsageError if items are asked for and there are none.
    """
    if sampling.item is None and sampling.size is None:
        return list(suites)
    items = [case for suite in suites for case in suite.cases if case.item is not None]
    if not items:
        option = "--sample-size" if sampling.item is None else "--item"
        message = f"{option} takes items of a dataset, and no suite given here has one"
        hint = "name it in eval.yaml: `cases: {datasets: [items.jsonl]}`"
        raise UsageError(message, hint=hint)
    taken, text = [], sampling.item and sampling.item.casefold()
    for suite in suites:
        cases = [c for c in suite.cases if text is None or text in (c.item or "").casefold()]
        # The paths of a case with branches are one item.
        known = list(dict.fromkeys((c.path, c.family) for c in cases if c.item is not None))
        if sampling.size is not None and sampling.size < len(known):
            kept = set(random.Random(sampling.seed).sample(known, sampling.size))  # noqa: S311
            cases = [c for c in cases if c.item is None or (c.path, c.family) in kept]
        taken.append(replace(suite, cases=tuple(cases)))
    if not any(suite.cases for suite in taken):
        hint = f"the first items are: {', '.join(case.case.id for case in items[:5])}"
        raise UsageError(f"no item has `{sampling.item}` in its id or message", hint=hint)
    return taken


def dataset_cases(
    suite: Suite, document: Document, root: Path, variables: frozenset[str], problems: list[Problem]
) -> Iterator[LoadedCase]:
    """The cases of all the suite's datasets, in order; what is wrong goes into `problems`."""
    for number, dataset in enumerate(suite.cases.datasets):
        path = root / dataset.path
        try:
            template = _template(dataset, document, root, ("cases", "datasets", number))
            items = _read_items(path, problems)
        except InvalidFilesError as error:
            problems.extend(error.problems)
            continue
        found: dict[Problem, list[DatasetItem]] = {}
        for item in items:
            written = replace(template, data=_case_of(item, template.data))
            case, wrong = semantics.read_case(written, variables, suite, root)
            if case is not None:
                own = Document(path, "", written.data, line=item.line)
                yield LoadedCase(case, own, item=f"{item.id} {item.query}")
            for problem in wrong:
                found.setdefault(problem, []).append(item)
        for problem, having in found.items():
            if not template.text or len(having) < len(items):  # else it is the case file's
                message = f"{problem.message} (in {len(having)} of {len(items)} items)"
                line = having[0].line
                problem = replace(problem, file=path, line=line, column=1, message=message)
            problems.append(problem)


def _template(dataset: Dataset, document: Document, root: Path, loc: Loc) -> Document:
    for key, name in (("path", dataset.path), ("case", dataset.case)):
        if name is not None and not (root / name).is_file():
            message = f"no such file: {name} (paths start from {root.name}/)"
            raise InvalidFilesError([document.problem((*loc, key), message)])
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


def _read_items(path: Path, problems: list[Problem]) -> list[DatasetItem]:
    """The items in the file, but archived ones. Raises InvalidFilesError if it is no JSON."""
    items, wrong = list[DatasetItem](), list[Problem]()
    unused: list[tuple[Path, int, int, str]] = []
    for number, (line, value) in enumerate(_json_values(read_text(path), path), start=1):
        if isinstance(value, dict) and str(value.get("status", "")).upper() == "ARCHIVED":
            continue
        place = (path, line, 1, f"item {number}")
        try:
            items.append(read_item(value, line, f"{path.stem}-{len(items) + 1}"))
        except NotAnItemError as error:
            wrong.append(Problem(*place, *error.args))
            continue
        given = value.get("expected_output", value.get("expectedOutput"))
        if items[-1].expected is None and given not in (None, "", {}, []):
            unused.append(place)
    if unused:
        where = f"in {len(unused)} of {len(items)} items"
        what = f"no text is found in `expected_output`: it is no check ({where})"
        fix = f"looked for in {', '.join(EXPECTED)}; its fields are <<expected_output.NAME>>"
        wrong.append(Problem(*unused[0], what, fix, "warning"))
    if not items and not wrong:
        wrong.append(Problem(path, 1, 1, "", "there is no item in it", "add one a line"))
    problems += wrong
    return items


def _json_values(text: str, path: Path) -> list[tuple[int, Any]]:
    """What a list, or an object's `items` or `data` hold (at line 1), or values on their lines."""
    whole, found = path.suffix == ".json" or text.lstrip().startswith("["), []
    for number, line in enumerate([text] if whole else text.split("\n"), start=1):
        try:
            if line.strip():
                value = json.loads(line, parse_constant=no_constant, object_pairs_hook=unique_keys)
                found.append((number, value))
        except (ValueError, RecursionError) as error:
            fix = "an item is an object; a file holds a list of them, or one a line"
            more, at = getattr(error, "lineno", 1), getattr(error, "colno", 1)
            deep = isinstance(error, RecursionError)
            what = "nested too deeply" if deep else getattr(error, "msg", None) or str(error)
            refuse(path, f"not JSON: {what}", fix, number + more - 1, at)
    only = found[0][1] if len(found) == 1 else None
    listed = only.get("items", only.get("data")) if isinstance(only, dict) else only
    return [(1, value) for value in listed] if isinstance(listed, list) else found


def read_item(value: Any, line: int, default_id: str) -> DatasetItem:
    """The item that `value` holds. Raises NotAnItemError."""
    if not isinstance(value, dict) or "input" not in value:
        fix = 'write {"input": {"query": …}, …}; other tools\' suites: skillup import'
        raise NotAnItemError("an item without `input`", fix)
    given, metadata = value["input"], value.get("metadata")
    if not isinstance(item_id := value.get("id") or default_id, str | int):
        raise NotAnItemError("its `id` is neither a text nor a whole number", "write a text")
    query = given if isinstance(given, str) else _first_text(given, MESSAGE)
    raw = given if isinstance(given, list) else _history_in(given)
    history, beside = _messages_of(raw or []), query is not None and raw is not None
    if query is None:
        # The last user message is the one under test; what stands before it is history.
        place = _last_user(history)
        query = history[place]["content"] if place < len(history) else None
        history = history[:place]
    if query is None or not query.strip():
        fix = f"looked for in {', '.join(MESSAGE)}"
        raise NotAnItemError("there is no user message in `input`", fix)
    earlier = _history_in(metadata)
    history = history if earlier is None else _messages_of(earlier)
    answer = value.get("expected_output", value.get("expectedOutput"))
    only = list(answer) if isinstance(answer, dict) and len(answer) == 1 else []
    expected = _scalar(answer) or _first_text(answer, (*EXPECTED, *only))
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
        system=_first_text(spoken[0], ("content",)) if spoken else None,
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


def _first_text(section: Any, names: Sequence[str]) -> str | None:
    texts = (_scalar(section.get(name)) for name in names) if isinstance(section, dict) else ()
    return next((text for text in texts if text is not None), None)


def _history_in(section: Any) -> Any:
    found = (section.get(name) for name in HISTORY) if isinstance(section, dict) else ()
    return next((value for value in found if value is not None), None)


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
    if not isinstance(content, str | None):
        content = json.dumps(content, ensure_ascii=False)
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
