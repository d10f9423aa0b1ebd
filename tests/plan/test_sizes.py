"""A run of millions of trials would be planned for minutes, in silence: it is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillup.errors import UsageError
from skillup.plan import MOST_JOBS
from skillup.schema.base import MOST_TRIALS
from tests.support.plans import a_plan
from tests.support.project import Project

CASE = "input: {prompt: go}\nscripted: [{say: ok}]\n"


@pytest.mark.parametrize("where", ["eval.yaml", "a.yaml"])
def test_so_it_is_where_files_say_how_often(project: Project, where: str) -> None:
    files = {"eval.yaml": "name: s\n", "a.yaml": CASE}
    more = {"eval.yaml": "cases: {defaults: {trials: 10001}}\n", "a.yaml": "trials: 10001\n"}
    project.write({**files, where: files[where] + more[where]})
    outcome = project.run("validate", ".")
    assert outcome.exit_code == 2
    assert f"`{MOST_TRIALS + 1}` is out of range" in outcome.stderr
    assert f"it must be at most {MOST_TRIALS}" in outcome.stderr


def test_every_engine_and_variant_counts_and_only_what_is_selected(tmp_path: Path) -> None:
    often = {"a": {"trials": MOST_TRIALS}, "b": {}}
    engines = [f"p{number}" for number in range(11)]
    both = ("with_skill", "without_skill")
    with pytest.raises(UsageError, match="a run of 220,022 trials"):
        a_plan(tmp_path, often, engines=engines, variants=both)
    made = a_plan(tmp_path, often, engines=engines, variants=both, case_globs=("b",))
    assert len(made.jobs) == 22 < MOST_JOBS
