"""Written-down judges that suites name, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skillup.errors import Problem

if TYPE_CHECKING:
    from skillup.load.model import LoadedSuite


def broken_judge_files(suites: Sequence[LoadedSuite]) -> Iterator[Problem]:
    """A problem for each file that is named as `scripted:FILE` and cannot be used."""
    for suite in suites:
        models = [c.case.judge_model for c in suite.cases if c.case.judge_model is not None]
        named = {model.model: model for model in models if model.model.startswith("scripted:")}
        if not named:
            continue
        from skillup.judges.models.client import ModelOptions, Models

        known = Models(ModelOptions({}, str))
        for model in named.values():
            why = known.problem(model, suite.root)
            if why is not None:
                line, column = suite.document.locate(("judge", "model"))
                yield Problem(suite.path, line, column, "judge.model", why)
