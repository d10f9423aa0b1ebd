"""One assertion of AgentV or promptfoo, and what goes with every one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillup.importers.promptfoo.values import SourceValue, as_text, tidy

Check = dict[str, Any]
Parts = list[tuple[Check, float]]
"""Checks that stand for one assertion, each with its share of the assertion's weight."""


@dataclass(frozen=True, slots=True)
class Background:
    """What assertions may refer to, and how their tool reads them."""

    promptfoo: bool = False
    """Else AgentV: texts are trimmed before they are compared."""
    expected: Any = None
    criteria: str = ""
    base: Path | None = None
    templates: SourceValue | None = None
    rubric_prompt: SourceValue | None = None
    """The grading prompt of all rubrics that have none of their own."""
    scored: bool = False
    """The test passes from a score, so that a check that fails need not make it fail."""


@dataclass(slots=True)
class Assertion:
    """An assertion being converted."""

    node: SourceValue
    kind: str
    negated: bool
    background: Background
    name: str = ""
    _answered_negation: bool = field(default=False)

    @property
    def argument(self) -> SourceValue | None:
        """What stands under `value`."""
        return self.node.get("value")

    def value(self) -> Any:
        """What stands under `value`, templates filled in and a file that it names read."""
        node = self.argument
        if node is None:
            return None
        found = node.take()
        if isinstance(found, str) and found.startswith("file://"):
            return self.read(found, node)
        return found

    def knows(self, *keys: str) -> None:
        """Report what else stands in a value that is a mapping."""
        node = self.argument
        for key, item in node.items() if node is not None else ():
            if key not in keys:
                item.note("not carried over", "left out: there is no counterpart")

    def read(self, reference: str, node: SourceValue) -> Any:
        """What a ``file://`` reference holds; None if it is code, or not to be had."""
        from skillup.importers import references

        if reference.rpartition(".")[2].partition(":")[0] in ("js", "ts", "mjs", "cjs", "py", "rb"):
            node.lost("this is made by a program", "left out: write the value itself")
            return None
        return references.read(reference, node, base=self.background.base)

    def texts(self) -> list[str]:
        """The value as texts: a list, or one text."""
        found = self.value()
        if found is None:
            return []
        return [as_text(item) for item in found] if isinstance(found, list) else [as_text(found)]

    def number(self, *names: str) -> float | int | None:
        """The number under one of `names`."""
        node = self.node.get(*names)
        return None if node is None else node.number()

    @property
    def counts_by_score(self) -> bool:
        """Whether only its score matters: it is neither negated, nor required by itself."""
        if self.negated or not self.background.scored:
            return False
        return self.node.value.get("required") in (None, False)

    def takes_negation(self) -> bool:
        """Whether it is negated; the converter then answers for it."""
        self._answered_negation = True
        return self.negated

    def drop(self, what: str, instead: str) -> Parts:
        """Report the assertion as lost."""
        self.node.note(what, instead)
        return []

    def negate(self, parts: Parts) -> Parts:
        """`parts` as they must not all hold, unless the converter has seen to that."""
        if not self.negated or self._answered_negation or not parts:
            return parts
        return [({"none_of": [joined(parts)]}, 1.0)]


def joined(parts: Iterable[tuple[Check, float]]) -> Check:
    """Several checks as one that holds if all of them do."""
    checks = [with_weight(check, share) for check, share in parts]
    if len(checks) == 1:
        return {key: value for key, value in checks[0].items() if key != "weight"}
    even = len({check.get("weight", 1) for check in checks}) == 1
    if even:
        checks = [{k: v for k, v in check.items() if k != "weight"} for check in checks]
    return {"all_of": checks}


def with_weight(check: Check, weight: float) -> Check:
    """`check` with its weight, which is left out if it is 1."""
    return check if weight == 1 else {**check, "weight": tidy(round(weight, 6))}


def shared(checks: Iterable[Check]) -> Parts:
    """Checks that share an assertion's weight evenly."""
    found = list(checks)
    return [(check, 1 / len(found)) for check in found]


def together(checks: Iterable[Check]) -> Parts:
    """Checks that stand for one assertion that holds or does not."""
    found = list(checks)
    return one(found[0] if len(found) == 1 else {"all_of": found})


def one(check: Check) -> Parts:
    """A single check."""
    return [(check, 1.0)]
