"""Datasets of a suite: a case for each item, made by the case file that the suite names for it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.load.case_problems import case_problems, problem_at
from skillup.load.dataset_items import QUERY, DatasetItem, read_items
from skillup.load.expand import merge_defaults
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.load.problems import problems_from
from skillup.load.yaml_reader import Document, read_yaml
from skillup.schema.case import Case
from skillup.schema.suite import Dataset, Suite
from skillup.schema.templates import escape, written_in

# Which items of datasets are taken: `--item`, `--sample-size`, `--seed`.


@dataclass(frozen=True, slots=True)
class Sampling:
    """What was asked for; the default takes everything."""

    item: str | None = None
    """Only items whose id or message has this text in it; upper and lower case are the same."""
    size: int | None = None
    """At most so many items of each suite."""
    seed: int = 0
    """The same seed takes the same items of the same dataset, on any machine."""


def sampled(suites: Sequence[LoadedSuite], sampling: Sampling) -> list[LoadedSuite]:
    """`suites` with only the items that are taken.

    `--item` asks for items: other cases are left out. A sample is of items: other cases stay.
    Raises UsageError if items are asked for and there are none.
    """
    if sampling.item is None and sampling.size is None:
        return list(suites)
    option = "--sample-size" if sampling.item is None else "--item"
    items = [case for suite in suites for case in suite.cases if case.item is not None]
    if not items:
        raise UsageError(
            f"{option} takes items of a dataset, and no suite given here has one",
            hint="name it in eval.yaml: `cases: {datasets: [items.jsonl]}`",
        )
    taken = [replace(suite, cases=_taken(suite.cases, sampling)) for suite in suites]
    if not any(case.item is not None for suite in taken for case in suite.cases):
        known = ", ".join(case.case.id for case in items[:5])
        raise UsageError(f"no item has `{sampling.item}` in its id or message",
                         hint=f"the first items are: {known}")  # fmt: skip
    return taken


def _taken(cases: Sequence[LoadedCase], sampling: Sampling) -> tuple[LoadedCase, ...]:
    wanted = sampling.item.casefold() if sampling.item is not None else None
    if wanted is not None:
        cases = [case for case in cases if wanted in (case.item or "").casefold()]
    # The paths of a case with branches are one item.
    items = list(dict.fromkeys(_item_of(case) for case in cases if case.item is not None))
    if sampling.size is None or sampling.size >= len(items):
        return tuple(cases)
    kept = set(random.Random(sampling.seed).sample(items, sampling.size))  # noqa: S311
    return tuple(case for case in cases if case.item is None or _item_of(case) in kept)


def _item_of(case: LoadedCase) -> tuple[Path, str]:
    return case.path, case.family


# What is wrong with the cases of a dataset: said once, and where it is to be mended.

_LEADS = ("prompt", "turns", "conversation", "transcript")


@dataclass(slots=True)
class Findings:
    """The problems of a dataset's cases; both lists of an item are in the same order."""

    items: int
    _found: dict[tuple[str, ...], list[tuple[Problem, Problem]]] = field(default_factory=dict)

    def add(self, in_case_file: Sequence[Problem], in_item: Sequence[Problem]) -> None:
        """What one item has: as problems of the case file, and as problems of the item."""
        seen: set[tuple[str, ...]] = set()
        for told, own in zip(in_case_file, in_item, strict=False):
            key = (told.severity, told.field, told.message)
            if key not in seen:
                seen.add(key)
                self._found.setdefault(key, []).append((told, own))

    def told(self) -> Iterator[Problem]:
        """Each problem once, with how many items have it."""
        for places in self._found.values():
            told, own = places[0]
            if len(places) == self.items:
                yield told
            else:
                message = f"{own.message} (in {len(places)} of {self.items} items)"
                yield replace(own, message=message)


def message_never_said(template: Document) -> Problem | None:
    """A case file that leads the conversation itself, and has no place for the item's message."""
    given = template.data.get("input")
    if not isinstance(given, dict) or not any(name in given for name in _LEADS):
        return None
    if QUERY in written_in(json.dumps(given, default=str, ensure_ascii=False)):
        return None
    line, column = template.locate(("input",))
    return Problem(
        template.path, line, column, "input",
        f"the items' message is never said: nothing here is <<{QUERY}>>",
        f"write <<{QUERY}>> where the message belongs, or leave `input` without turns",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ItemDocument(Document):
    """An item of a dataset; whatever is wrong with its case is said of the line it begins on."""

    line: int = 1

    def locate(self, loc: Any, *, key: bool = False) -> tuple[int, int]:  # noqa: ARG002
        """The item's own line."""
        return self.line, 1


def dataset_cases(
    suite: Suite, document: Document, root: Path, variables: frozenset[str], problems: list[Problem]
) -> Iterator[LoadedCase]:
    """The cases of all the suite's datasets, in order; what is wrong goes into `problems`."""
    for number, dataset in enumerate(suite.cases.datasets):
        path = root / dataset.path
        loc = ("cases", "datasets", number)
        if not path.is_file():
            message = f"no such file: {dataset.path} (paths start from {root.name}/)"
            problems.append(problem_at(document, (*loc, "path"), message))
            continue
        template = _template(dataset, document, root, loc, problems)
        if template is not None:
            items = read_items(path, problems)
            yield from _cases(path, items, template, suite, variables, problems)


def dataset_suite(path: Path) -> Document:
    """The suite of a dataset that is run by itself: its items, and nothing besides."""
    data = {"name": path.stem, "cases": {"files": [], "datasets": [{"path": path.name}]}}
    return Document(path, "", data)


def templates_of(data: Mapping[Any, Any], root: Path) -> set[Path]:
    """The case files that datasets are made with: they are no cases of their own."""
    section = data.get("cases")
    listed = section.get("datasets") if isinstance(section, dict) else None
    named = [d.get("case") for d in listed or () if isinstance(d, dict)]
    return {(root / name).resolve() for name in named if isinstance(name, str)}


def _template(
    dataset: Dataset,
    document: Document,
    root: Path,
    loc: tuple[str | int, ...],
    problems: list[Problem],
) -> Document | None:
    if dataset.case is None:
        return Document(root / dataset.path, "", {})
    path = root / dataset.case
    if not path.is_file():
        message = f"no such file: {dataset.case} (paths start from {root.name}/)"
        problems.append(problem_at(document, (*loc, "case"), message))
        return None
    try:
        return read_yaml(path)
    except InvalidFilesError as error:
        problems.extend(error.problems)
        return None


def _cases(
    path: Path,
    items: list[DatasetItem],
    template: Document,
    suite: Suite,
    variables: frozenset[str],
    problems: list[Problem],
) -> Iterator[LoadedCase]:
    unsaid = message_never_said(template)
    if items and unsaid is not None:
        problems.append(unsaid)
        return
    found = Findings(len(items))
    for item in items:
        data = case_of(item, template.data)
        own = ItemDocument(path, "", data, item.line)
        written = Document(template.path, template.text, data, place=template.place)
        place = written if template.text else own
        try:
            case = Case.model_validate(data)
        except ValidationError as error:
            found.add(problems_from(error, place), problems_from(error, own))
            continue
        merged = merge_defaults(case, suite, default_id=item.id)
        found.add(list(case_problems(merged, place, variables)),
                  list(case_problems(merged, own, variables)))  # fmt: skip
        yield LoadedCase(merged, own, item=f"{item.id} {item.query}")
    problems.extend(found.told())


def case_of(item: DatasetItem, template: Mapping[Any, Any]) -> dict[str, Any]:
    """The case for `item`: `template`, with what it leaves open filled in from the item.

    The message is `<<query>>` wherever the template puts it; without an `input` of its own it is
    the prompt. The template's words outrank the item's.
    """
    data = dict(template)
    data["id"] = item.id
    own = data.get("vars")
    known = {QUERY: item.query, **({"expected_output": item.expected} if item.expected else {})}
    data["vars"] = {**item.values, **known, **(own if isinstance(own, dict) else {})}
    if item.tags:
        tags = data.get("tags", [])
        data["tags"] = [*(tags if isinstance(tags, list) else [tags]), *item.tags]
    given = data.get("input", {})
    if not isinstance(given, dict):
        return data
    given = dict(given)
    data["input"] = given
    if item.system is not None:
        given.setdefault("system", escape(item.system))
    if item.history:
        # What was said once is no template.
        given.setdefault("history", [{**message, "literal": True} for message in item.history])
    if item.message_index is not None:
        given.setdefault("message_index", item.message_index)
    if not {"prompt", "turns", "conversation", "transcript"} & given.keys():
        given["prompt"] = f"<<{QUERY}>>"
    if item.expected is not None:
        _expect(item.expected, data, given)
    return data


def _expect(expected: str, data: dict[str, Any], given: dict[str, Any]) -> None:
    """The expected answer belongs to the message under test, unless the template has its own."""
    expected = escape(expected)
    if "prompt" in given:
        data.setdefault("expected_output", expected)
        return
    turns = given.get("turns")
    if not isinstance(turns, list):
        return
    for place, turn in enumerate(turns):
        content = turn.get("content") if isinstance(turn, dict) else turn
        if not isinstance(content, str) or QUERY not in written_in(content):
            continue
        full = dict(turn) if isinstance(turn, dict) else {"content": turn}
        full.setdefault("expected_output", expected)
        given["turns"] = [*turns[:place], full, *turns[place + 1 :]]
        return
