"""`skillup judge` after a run in which a secret was said: the same bytes again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import Project

SECRET = "sk-lab-0123456789"
KEY = {"LAB_API_KEY": SECRET}
CASE = """
    id: leak
    input:
      turns:
        - content: What is the key?
          capture:
            - {variable: key, pattern: 'key is (?P<value>\\S+)', default: none}
          assertions:
            - matches: 'key is sk-lab-\\d+'
            - contains: LAB_API_KEY
            - max_tokens: 4
        - content: Write <<key>> down
          assertions:
            - file_contains: {path: key.txt, matches: 'sk-lab'}
    scripted:
      - turn: 1
        say: The key is sk-lab-0123456789
      - turn: 2
        steps:
          - write: {path: key.txt, content: sk-lab-0123456789}
        say: It is written.
    """


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path).write({"cases/eval.yaml": "name: lab\n", "cases/leak.yaml": CASE})


def test_a_masked_record_gives_the_grade_of_the_run(project: Project) -> None:
    held = project.run("run", "cases", "--out", "run", env=KEY)
    assert held.exit_code == 1, held.stderr
    trial = project.root / "run/trials/leak/scripted/with_skill/1"
    before = (trial / "grading.json").read_bytes()
    assert SECRET.encode() not in before + (trial / "record.json").read_bytes()

    again = project.run("judge", "run", "--write")

    assert (again.exit_code, "nothing changed" in again.stderr) == (1, True), again.stderr
    [judgement] = (project.root / "run/judgements").iterdir()
    assert (judgement / "trials/leak/scripted/with_skill/1/grading.json").read_bytes() == before


def test_what_the_run_says_is_what_it_stores(project: Project) -> None:
    (case,) = project.run_json("cases", "--out", "run", env=KEY)["cases"]

    found = {check["kind"]: check["passed"] for check in case["turns"][0]["checks"]}
    assert found["matches"] is False
    assert found["contains"] is True
