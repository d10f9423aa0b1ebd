"""Which items of datasets are taken: `--item`, `--sample-size`, `--seed`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillup.errors import UsageError
from skillup.load.model import LoadedCase, LoadedSuite


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
