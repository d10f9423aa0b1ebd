"""What one test of a suite says besides its message: expectations and assertions."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from skillup.interop.assertion import Background, Check
from skillup.interop.assertions import convert_assertions
from skillup.interop.draft import CaseDraft, Placed, SuiteDraft
from skillup.interop.listed_tests import ListedTest
from skillup.interop.messages import content_text, is_messages
from skillup.interop.node import Node, as_text
from skillup.interop.rubric_assertions import LEAST_PASS, criteria_of
from skillup.interop.templating import Scope

_LISTS = ("assert", "assertions", "evaluators", "graders")


@dataclass
class SuiteContext:
    """What a suite gives to each of its tests."""

    top: Node | None
    defaults: Node | None
    promptfoo: bool
    draft: SuiteDraft
    tags: list[str] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    templates: Node | None = None


@dataclass
class Told:
    """What one test says besides its message: expectations and assertions."""

    test: ListedTest
    node: Node
    scope: Scope
    suite: SuiteContext

    @property
    def skips_defaults(self) -> bool:
        """Whether the suite's own input and assertions are not meant for this test."""
        run, options = self.node.get("execution"), self.test.get("options")
        skips = run.get("skip_defaults") if run is not None else None
        without = options.get("disableDefaultAsserts") if options is not None else None
        return any(node is not None and node.take() is True for node in (skips, without))

    @property
    def expected(self) -> Node | None:
        """The reference answer."""
        own = self.node.get("expected_output", "expected_messages")
        if own is not None:
            return own
        variable = self.scope.variables.get("expected_output")
        return variable.with_scope(self.scope) if variable is not None else None

    @property
    def criteria(self) -> str:
        """What a good answer does, in one text."""
        node = self.node.get("criteria", "expected_outcome", "outcome")
        return node.text() if node is not None else ""

    def background(self) -> Background:
        """For the converters of assertions."""
        expected = self.expected
        return Background(
            promptfoo=self.suite.promptfoo,
            expected=expected.take() if expected is not None else None,
            criteria=self.criteria,
            base=self.test.base,
            templates=self.suite.templates,
            rubric_prompt=self._rubric_prompt(),
            scored=not self.suite.promptfoo or self.test.get("threshold") is not None,
        )

    def _rubric_prompt(self) -> Node | None:
        for place in (self.node, *self.test.fallbacks):
            options = place.get("options")
            for holder in (options, place):
                if holder is not None and (own := holder.get("rubricPrompt", "rubric_prompt")):
                    return own.with_scope(self.scope)
        return None

    def checks(self, node: Node) -> list[Check]:
        """The test's assertions and those that all tests have."""
        own = assertion_lists(node)
        if (run := node.get("execution")) is not None:
            own += assertion_lists(run)
        shared: list[Node] = []
        for inherited in self.test.fallbacks:
            shared += assertion_lists(inherited)
        if (top := self.suite.top) is not None:
            shared += assertion_lists(top)
            older = top.get("execution")
            shared += assertion_lists(older) if older is not None else []
        if self.skips_defaults:
            shared = []
        order = [*shared, *own] if self.suite.promptfoo else [*own, *shared]
        checks = convert_assertions(
            [item.with_scope(self.scope) for item in order], self.background()
        )
        rubrics = node.get("rubrics")
        if rubrics is not None:
            checks.append({"rubric": {"criteria": criteria_of(rubrics), "threshold": LEAST_PASS}})
        criteria = node.get("criteria", "expected_outcome", "outcome")
        if criteria is not None and not order and rubrics is None:
            checks.append({"rubric": criteria.text()})
        return checks

    def expected_text(self, case: CaseDraft) -> str:
        """The reference answer as a text."""
        node = self.expected
        if node is None:
            return ""
        text = answer_text(node, case, self.test.base)
        judged = any(assertion_lists(n) for n in (self.node, self.suite.top) if n is not None)
        if text and judged and not self.suite.promptfoo:
            node.changed(
                "a reference that the other tool only shows to its judges",
                "here it is a check of its own: a judge compares the answer with it",
            )
        return text


def assertion_lists(node: Node) -> list[Node]:
    """Every list of assertions at `node`, by whatever name."""
    return [found for name in _LISTS if (found := node.get(name)) is not None]


def answer_text(node: Node, case: CaseDraft, base: Path) -> str:
    value = node.take()
    if not is_messages(value):
        return as_text(value).strip()
    texts = []
    for item in value if isinstance(value, list) else [value]:
        if item.get("tool_calls"):
            node.lost("expected calls of tools", "left out: check them with `tool_called`")
        for key in sorted(set(map(str, item)) - {"role", "content", "tool_calls"}):
            node.lost(f"`{key}` of an expected message", "left out")
        if item.get("content") is not None:
            texts.append(content_text(item["content"], node, case.placed, base=base, inline=True))
    return "\n\n".join(texts).strip()
