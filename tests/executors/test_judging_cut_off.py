"""Judging that was cut off and goes on: what has an answer is not asked again."""

from __future__ import annotations

from tests.support.moody import set_mood
from tests.support.project import Project

# The lots of the first rule let it answer the first of the two questions, not the second.
BY_AGENT = """
    input: {prompt: go}
    judges:
      - type: agent_judge
        engine: moody
        repeat: 2
        criteria: [{id: said, outcome: it answered}]
        scripted:
          - probability: 0.6
            say: &yes '{"criteria": [{"id": "said", "pass": true, "reason": "so"}]}'
          - {turn: 1, say: *yes}
    scripted: [{say: ok}]
    """


def test_an_agent_that_meets_a_quota_at_its_second_question(project: Project) -> None:
    project.write({"cases/eval.yaml": "name: d\n", "cases/a.yaml": BY_AGENT})
    set_mood(project, 1, error="quota")
    outcome = project.run("run", "cases", "--out", "out", "--json")
    assert outcome.exit_code == 3, outcome.stderr
    assert outcome.data["stopped"]["kind"] == "quota"
    set_mood(project)
    data = project.run_json("--resume", "out")
    assert data["cases"][0]["status"] == "PASS"
    judging = data["summary"]["judging"]
    assert (judging["calls"], judging["cached_calls"]) == (2, 1)
