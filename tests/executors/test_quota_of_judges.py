"""A judge whose provider has no quota left: the conversation is kept, and judged on `--resume`."""

from __future__ import annotations

import pytest

from tests.support.moody import set_mood
from tests.support.project import Project

JOB = "a/scripted/with_skill/1"
JUDGED = """
    input: {prompt: go}
    judges:
      - type: agent_judge
        engine: moody
        criteria: [{id: said, outcome: it answered}]
        scripted: [{turn: 1, say: '{"criteria": [{"id": "said", "pass": true, "reason": "so"}]}'}]
    scripted: [{say: ok}]
    """


@pytest.fixture
def left(project: Project) -> Project:
    """A run that such a judge has ended."""
    project.write({"eval.yaml": "name: d\n", "a.yaml": JUDGED, "b.yaml": JUDGED})
    set_mood(project, 1, error="quota")
    outcome = project.run("run", ".", "-j", "1", "--out", "out", "--json")
    assert outcome.exit_code == 3, outcome.stderr
    assert outcome.data["stopped"]["kind"] == "quota"
    assert (outcome.data["cases"], len(outcome.data["not_run"])) == ([], 2)
    return project


def test_it_is_judged_when_the_run_goes_on_and_not_held_again(left: Project) -> None:
    record = left.root / "out/trials" / JOB / "record.json"
    before = record.read_bytes()
    set_mood(left)
    outcome = left.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 0, outcome.stderr
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "PASS"]
    assert record.read_bytes() == before


def test_as_long_as_there_is_no_quota_it_stays_to_be_judged(left: Project) -> None:
    outcome = left.run("run", "--resume", "out", "--json")
    assert outcome.exit_code == 3, outcome.stderr
    assert (outcome.data["cases"], len(outcome.data["not_run"])) == ([], 2)
