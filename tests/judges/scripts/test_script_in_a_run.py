"""Scripts in a run: as gates, as checks of turns, and as judges."""

from __future__ import annotations

from tests.support.project import Project

_CASE = """
input:
  turns:
    - content: Write one.
      post_condition: {script: gate.sh}
      assertions:
        - script: count.sh
    - content: Write two.
      assertions:
        - script: {path: count.sh, timeout_seconds: 20}
judge: {type: script, script_path: judge.py}
scripted:
  - turn: 1
    steps: [{write: {path: one.txt, content: "1"}}]
    say: one
  - turn: 2
    steps: [{write: {path: two.txt, content: "2"}}]
    say: two
"""
_COUNT = '#!/bin/sh\ntest "$(ls | wc -l | tr -d " ")" = "$EVAL_TURN" && echo "turn $EVAL_TURN"\n'
_JUDGE = """
import json, os
entries = json.load(open(os.environ["EVAL_TRANSCRIPT_PATH"]))
said = [entry["content"] for entry in entries if entry["role"] == "assistant"]
print(json.dumps({"pass": said == ["one", "two"], "reason": " ".join(said)}))
"""


def test_each_sees_what_was_there_when_its_turn_ended(project: Project) -> None:
    project.write(
        {
            "eval.yaml": "name: s\n",
            "cases/a.yaml": _CASE,
            "gate.sh": "#!/bin/sh\ntest -e one.txt\n",
            "count.sh": _COUNT,
            "judge.py": _JUDGE,
        }
    )

    outcome = project.run("run", ".", "--json")

    assert outcome.exit_code == 0, outcome.stdout
    (grade,) = outcome.data["cases"]
    found = [[check["found"] for check in turn["checks"]] for turn in grade["turns"]]
    assert found == [["exit code 0", "turn 1"], ["turn 2"]]
    assert [check["found"] for check in grade["assertions"]] == ["one two"]


def test_a_changed_script_never_judges_in_place_of_a_kept_copy_that_is_gone(
    project: Project,
) -> None:
    """S8: who removed the copy had trials judged by a script of their own."""
    case = "input: {prompt: x}\nassertions: [{script: no.sh}]\nscripted: [{say: y}]\n"
    judged = "input: {prompt: x}\njudge: {type: script, script_path: no.sh}\nscripted: [{say: y}]\n"
    project.write({"eval.yaml": "name: s\n", "a.yaml": case, "b.yaml": judged, "no.sh": "exit 1\n"})
    assert project.run("run", ".", "--out", "out").exit_code == 1
    for blob in (project.root / "out/blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    statuses = []
    for content in ("exit 1\n", "exit 0\n"):
        (project.root / "no.sh").write_text(content)
        statuses += [
            c["grade"]["status"] for c in project.run("judge", "out", "--json").data["cases"]
        ]
    assert statuses == ["FAIL", "FAIL", "ERROR", "ERROR"]
    by_the_new_one = project.run("judge", "out", "--cases", ".", "--json")
    assert [c["grade"]["status"] for c in by_the_new_one.data["cases"]] == ["PASS", "PASS"]
