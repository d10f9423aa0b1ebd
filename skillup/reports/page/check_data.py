"""Results of checks for the page, with the place of their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillup.reports.page.evidence import Step, evidence_of
from skillup.schema.grade import CheckResult


class Asked:
    """Which answers checks were asked of, in a conversation as the page has it."""

    def __init__(self, turns: Sequence[Step]) -> None:
        self._turns = turns
        self.steps = [step for turn in turns for step in (turn, *turn["follow_ups"])]

    def data(
        self, checks: Sequence[CheckResult], about: Step | None = None
    ) -> list[dict[str, Any]]:
        """`checks` of the step `about`, or of the conversation."""
        return [self._data(check, about) for check in checks]

    def _data(self, check: CheckResult, about: Step | None) -> dict[str, Any]:
        told = check.model_dump(mode="json", exclude={"children"})
        told["children"] = self.data(check.children, about)
        told["evidence"] = evidence_of(check, self._asked(check, about), self.steps)
        return told

    def _asked(self, check: CheckResult, about: Step | None) -> list[Step]:
        """The step itself; for another turn's check that turn's steps, the last first."""
        number = check.scope.removeprefix("turn ")
        if about is not None and number == str(about["turn_number"]):
            return [about]
        of = [s for s in self.steps if number == str(s["turn_number"])] or self.steps
        return of[::-1]
