"""What tells the rows of a table from each other, and no more than that."""

from __future__ import annotations

from collections.abc import Iterable

from skillup.reports.text import one_line, shown_id
from skillup.schema.analysis import CaseReliability
from skillup.trends.outcomes import WITH_SKILL

WITHOUT = "without skill"


class Names:
    """The names of a run's cases, engines and variants, as far as there are several."""

    def __init__(self, cases: Iterable[CaseReliability]) -> None:
        known = list(cases)
        self.several_suites = len({case.suite for case in known}) > 1
        self.several_engines = len({case.engine for case in known}) > 1

    def suite(self, suite: str, engine: str) -> str:
        """``demo``, and on which engine."""
        return f"{one_line(suite)} {one_line(engine)}" if self.several_engines else one_line(suite)

    def case(self, suite: str, case_id: str) -> str:
        """``demo: asks``, or just the case."""
        before = f"{one_line(suite)}: " if self.several_suites else ""
        return before + shown_id(case_id)

    def row(self, case: CaseReliability) -> str:
        """The case on its engine, in its variant."""
        name = self.case(case.suite, case.case_id)
        engine = f" {one_line(case.engine)}" if self.several_engines else ""
        return name + engine + ("" if case.variant == WITH_SKILL else f" ({WITHOUT})")
