"""Datasets of a suite, as Langfuse keeps them: a case for each item, made with a case file.

``{"id": …, "input": {"query": …}, "expected_output": {"response": …}, "metadata": {"history": […],
"message_index": …}}``; a JSON list, an export with `items` or `data`, or a line for each item.
Source of the format: Langfuse's dataset items (https://langfuse.com/docs/datasets).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.load.dataset_items import DatasetItem, read_items
from skillup.load.model import LoadedCase, LoadedSuite, merge_defaults
from skillup.load.problems import problems_from
from skillup.load.semantics import case_problems
from skillup.load.yaml_reader import Document, Loc, read_yaml
from skillup.schema.case import Case
from skillup.schema.suite import Dataset, Suite
from skillup.schema.templates import escape, written_in

QUERY = "query"
"""The variable that holds an item's message."""

# Which items are taken: `--item`, `--sample-size`, `--seed`.


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
    if sampling.item is not None:
        text = sampling.item.casefold()
        cases = [case for case in cases if text in (case.item or "").casefold()]
    # The paths of a case with branches are one item.
    items = list(dict.fromkeys((c.path, c.family) for c in cases if c.item is not None))
    if sampling.size is None or sampling.size >= len(items):
        return tuple(cases)
    kept = set(random.Random(sampling.seed).sample(items, sampling.size))  # noqa: S311
    return tuple(c for c in cases if c.item is None or (c.path, c.family) in kept)


# From a suite's datasets to cases.


@dataclass(frozen=True, eq=False)
class ItemDocument(Document):
    """An item of a dataset; problems of its case have the line it begins on."""

    line: int = 1

    def locate(self, loc: Sequence[str | int], *, key: bool = False) -> tuple[int, int]:  # noqa: ARG002
        """The item's own line."""
        return self.line, 1


def dataset_suite(path: Path) -> Document:
    """The suite of a dataset that is run by itself: its items, and nothing besides."""
    data = {"name": path.stem, "cases": {"files": [], "datasets": [{"path": path.name}]}}
    return Document(path, "", data)


def case_templates(data: Mapping[Any, Any], root: Path) -> set[Path]:
    """The case files that datasets are made with: they are no cases of their own."""
    section = data.get("cases")
    listed = section.get("datasets") if isinstance(section, dict) else None
    named = [d.get("case") for d in listed or () if isinstance(d, dict)]
    return {(root / name).resolve() for name in named if isinstance(name, str)}


def dataset_cases(
    suite: Suite, document: Document, root: Path, variables: frozenset[str], problems: list[Problem]
) -> Iterator[LoadedCase]:
    """The cases of all the suite's datasets, in order; what is wrong goes into `problems`."""
    for number, dataset in enumerate(suite.cases.datasets):
        try:
            loc: Loc = ("cases", "datasets", number)
            template = _template(dataset, document, root, loc)
            yield from _cases(root / dataset.path, template, suite, root, variables, problems)
        except InvalidFilesError as error:
            problems.extend(error.problems)


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


def _cases(
    path: Path,
    template: Document,
    suite: Suite,
    root: Path,
    variables: frozenset[str],
    problems: list[Problem],
) -> Iterator[LoadedCase]:
    items = read_items(path, problems)
    found: dict[tuple[str, ...], list[tuple[Problem, Problem]]] = {}
    for item in items:
        data = case_of(item, template.data)
        own = ItemDocument(path, "", data, item.line)
        written = replace(template, data=data) if template.text else own
        pairs: list[tuple[Problem, Problem]]
        try:
            case = merge_defaults(Case.model_validate(data), suite, default_id=item.id)
        except ValidationError as error:
            pairs = [(p, p) for p in problems_from(error, written, Case)]
        else:
            seen = (case_problems(case, one, variables, suite, root) for one in (written, own))
            pairs = list(zip(*seen, strict=False))
            yield LoadedCase(case, own, item=f"{item.id} {item.query}")
        for pair in pairs:
            key = pair[0].severity, pair[0].field, pair[0].message
            found.setdefault(key, []).append((pair[0], replace(pair[1], file=path, line=item.line)))
    for places in found.values():
        # Once: in the case file what all items have, else with the first item that has it.
        in_case_file, in_item = places[0]
        message = f"{in_item.message} (in {len(places)} of {len(items)} items)"
        common = len(places) == len(items)
        problems.append(in_case_file if common else replace(in_item, column=1, message=message))


_LEADS = frozenset({"prompt", "turns", "conversation", "transcript"})


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
    given = data["input"] = dict(given)
    if item.system is not None:
        given.setdefault("system", escape(item.system))
    if item.history:
        # What was said once is no template.
        given.setdefault("history", [{**message, "literal": True} for message in item.history])
    if item.message_index is not None:
        given.setdefault("message_index", item.message_index)
    if _LEADS.isdisjoint(given):
        given["prompt"] = f"<<{QUERY}>>"
    if item.expected is not None and "prompt" in given:
        data.setdefault("expected_output", escape(item.expected))
    elif item.expected is not None and isinstance(given.get("turns"), list):
        given["turns"] = _with_expected(given["turns"], escape(item.expected))
    return data


def _with_expected(turns: list[Any], expected: str) -> list[Any]:
    """The expected answer belongs to the message under test, unless the template has its own."""
    for place, turn in enumerate(turns):
        full = turn if isinstance(turn, dict) else {"content": turn}
        content = full.get("content")
        if isinstance(content, str) and QUERY in written_in(content):
            return [*turns[:place], {"expected_output": expected, **full}, *turns[place + 1 :]]
    return turns


# From a file to items.
