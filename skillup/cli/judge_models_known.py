"""Judge models that a run could not ask, said before one is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from skillup.errors import Problem
from skillup.judges.models.client import ModelOptions, Models
from skillup.judges.needed import first_read
from skillup.load.model import LoadedSuite
from skillup.process.secrets import Secrets


def unusable_judges(
    suites: Sequence[LoadedSuite], environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Warnings: a line for each reason and suite. Written-down judges are checked as files."""
    models = Models(ModelOptions(environment, Secrets.from_environment(environment).mask))
    for suite in suites:
        told: set[str] = set()
        for loaded in suite.cases:
            model = loaded.case.judge_model
            if model is None or model.model.startswith("scripted:"):
                continue
            if first_read(loaded.case) is None:
                continue
            why = models.problem(model, suite.root)
            if why is None or why in told:
                continue
            told.add(why)
            line, column = suite.document.locate(("judge", "model"))
            fix = "a run of the cases that need it would be an error"
            yield Problem(suite.path, line, column, "judge.model", why, fix, "warning")
