"""A run on a cluster gives what the same run gives here, and ends as it ends here."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.dask_cluster import DaskCluster
from tests.support.moody import set_mood
from tests.support.project import Outcome, Project

PASS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
FAIL = PASS.replace("say: fine", "say: bad")
PRICED = "engine: scripted\nprices: {input: 1000, output: 1000}\n"  # 0.12 USD a turn
FILES = {
    "elsewhere/skills/near/SKILL.md": "---\nname: near\ndescription: Near.\n---\nDo it.\n",
    "elsewhere/logs/data/one.log": "one\n",
    "elsewhere/answer.txt": "fine",
    "work/suite/eval.yaml": """
        name: demo
        skills: [{path: skills/own}]
        distractors: [../../elsewhere/skills/near]
        judge: {model: "scripted:judge.yaml"}
        environment: {env: {SEEN: "${LAB_TOKEN}"}}
        cases:
          retry_policy: {max_retries: 1, retry_on: [crash]}
        """,
    "work/suite/skills/own/SKILL.md": "---\nname: own\ndescription: Own.\n---\nDo it.\n",
    "work/suite/judge.yaml": json.dumps(
        {
            "rules": [
                {
                    "when": "is polite",
                    "answer": {
                        "verdicts": [
                            {"id": "c1", "verdict": "pass", "reason": "It is.", "quote": "please"}
                        ]
                    },
                }
            ]
        }
    ),
    "work/suite/scripts/check.sh": "#!/bin/sh\nexit 0\n",
    "work/suite/cases/passes.yaml": """
        context: {fixture: ../../elsewhere/logs}
        collect_artifacts: ["made.txt"]
        input:
          turns:
            - content: make it
              capture: [{variable: n, pattern: '(\\d+) made'}]
            - content: now <<n>>
              assertions: [is polite]
        assertions:
          - files_exist: [made.txt, data/one.log]
          - skill_used: own
          - script: {path: scripts/check.sh}
        scripted:
          - steps:
              - {skill: own}
              - {write: {path: made.txt, content: "x"}}
              - {run: 'echo "it is $SEEN"'}
            say: 3 made
          - say: "yes please"
        """,
    "work/suite/cases/fails.yaml": """
        input: {prompt: hi}
        assertions: [{contains: never}]
        scripted: [{say: no}]
        """,
    "work/suite/cases/follows.yaml": """
        depends_on: [fails]
        input: {prompt: hi}
        assertions: [{contains: no}]
        scripted: [{say: no}]
        """,
    "work/suite/cases/crashes.yaml": """
        input: {prompt: hi}
        assertions: [{contains: no}]
        scripted: [{misbehave: {exit_code: 7}, say: no}]
        """,
    "work/suite/cases/refused.yaml": """
        input: {turns: [one, two]}
        assertions: [{golden_file: ../../elsewhere/answer.txt}]
        scripted: [{turn: 1, say: fine, misbehave: {error: overloaded, times: 1}}, {say: fine}]
        """,
    "work/suite/cases/parts.yaml": """
        input:
          turns:
            - content: one
              branches:
                - {name: left, turns: [two]}
                - {name: right, turns: [three]}
        assertions: [{contains: said}]
        scripted: [{when: two, steps: [{delay: 0.5}], say: said}, {say: said}]
        """,
}
VOLATILE = {
    "argv",
    "asked_for",  # a hash of the run's id, too
    "cost_usd_note",
    "cpu_seconds",
    "duration_ms",
    "finished_at",
    "peak_memory_bytes",
    "prefix_bytes",
    "prefix_sha256",
    "run_id",
    "session_id",
    "session_path",
    "started_at",
}
PLACES = re.compile(
    r"/[^ \"']*/skillup-[^ \"'/]*/[0-9a-f]{12}|\b[0-9a-f]{8}-[0-9a-f]{4}-[-0-9a-f]*|after \d+ s"
)


def lasting(value: Any) -> Any:
    """`value` without times, ids, places where trials worked, and who was kept back meanwhile."""
    if isinstance(value, Mapping):
        return {k: lasting(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        kept = [item for item in value if not str(item).endswith("the provider had refused others")]
        return [lasting(item) for item in kept]
    return PLACES.sub("…", value) if isinstance(value, str) else value


def content(run: Path) -> dict[str, Any]:
    """All that a run has written of its trials, by path."""
    found: dict[str, Any] = {}
    for file in sorted(run.rglob("*")):
        name = file.relative_to(run).as_posix()
        if not file.is_file() or not name.startswith(("trials", "blobs", "judge-answers")):
            continue
        if file.suffix == ".json" and "/files/" not in name and "/raw" not in name:
            found[name] = lasting(json.loads(file.read_text()))
        else:
            found[name] = file.read_text() if "/files/" in name else None
    return found


def history(run: Path) -> dict[str, list[str]]:
    """By job, what the journal has of it; which worker had it is in the cluster's only."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    found: dict[str, list[str]] = {}
    for event in events:
        if "job" in event and event["event"] not in ("trial_sent", "trial_forked"):
            found.setdefault(event["job"], []).append(event["event"])
    return found


def there(workers: DaskCluster) -> tuple[str, ...]:
    return ("--executor", "dask", "--scheduler", workers.address)


@pytest.mark.slow
def test_records_grades_files_and_answers_are_those_of_a_local_run(
    project: Project, workers: DaskCluster
) -> None:
    """S10: a worker refused what leads out of the suite's own folder; secrets stay masked."""
    project.write(FILES)
    (project.root / "work/suite/scripts/check.sh").chmod(0o755)

    env = {"LAB_TOKEN": "sk-of-the-client"}
    here = project.run("run", "work/suite", "--out", "here", "--json", env=env)
    command = ("run", "work/suite", "--out", "away", "--json", "-v", *there(workers))
    away = project.run(*command, env=env)

    assert (away.exit_code, here.exit_code) == (3, 3), away.stderr + here.stderr
    assert lasting(away.data) == lasting(here.data)
    assert {c["case_id"]: c["status"] for c in here.data["cases"]} == {
        "passes": "PASS",
        "fails": "FAIL",
        "follows": "SKIP",
        "crashes": "ERROR",
        "refused": "PASS",
        "parts/left": "PASS",
        "parts/right": "PASS",
    }
    written = content(project.root / "here")
    assert content(project.root / "away") == written
    kinds: tuple[str, ...]
    kinds = ("trials/crashes/scripted/with_skill/1/attempt-1.json", "blobs/", "judge-answers/")
    kinds += ("trials/passes/scripted/with_skill/1/files/made.txt",)
    assert [k for k in kinds if not any(name.startswith(k) for name in written)] == []
    assert history(project.root / "away") == history(project.root / "here")
    assert str(workers.root) not in (project.root / "away" / "result.json").read_text()
    # Nothing stays behind at the workers.
    assert [p for p in (workers.root / "tmp").iterdir() if p.name.startswith("skillup")] == []
    files = [f.read_bytes() for f in (project.root / "away").rglob("*") if f.is_file()]
    assert any(b"it is ***LAB_TOKEN***" in content for content in files)
    logs = "".join(workers.log(name) for name in ("one", "two", "scheduler"))
    for secret in ("sk-of-the-worker", "sk-of-the-client"):
        assert not any(secret.encode() in content for content in files)
        assert secret not in away.stderr + logs
    again = project.run("judge", "away", "--json").data
    assert not [case for case in again["cases"] if case.get("changed")]

    # The rest of a family runs there as if all of it did.
    trial = project.root / "here/trials/parts/right/scripted/with_skill/1"
    for name in ("record.json", "grading.json"):
        (trial / name).unlink()
    rest = project.run("run", "--resume", "here", "--json", *there(workers), env=env)
    shared = {c["case_id"]: c["turns"][0]["held_by"] for c in rest.data["cases"] if c["turns"]}
    assert shared["parts/right"] == "parts/left/scripted/with_skill/1", rest.stderr
    assert lasting(rest.data) == lasting(away.data)


@pytest.mark.slow
def test_a_spent_budget_starts_no_more_trials_and_the_run_goes_on_here_or_there(
    project: Project, workers: DaskCluster
) -> None:
    project.write({"eval.yaml": "name: d\n", "a.yaml": PASS, "engines/priced.yaml": PRICED})
    budget = ("run", ".", "-e", "priced", "--trials", "6", "--max-cost-usd", "0.3", "--json")
    stopped = project.run(*budget, *there(workers), "--out", "out")
    # A third trial fits beside two that used 0.24 USD; a fourth is not begun.
    assert (stopped.exit_code, stopped.data["summary"]["pass"]) == (3, 3), stopped.stderr
    assert stopped.data["stopped"]["message"] == "the budget of 0.30 USD is spent (0.36 USD)"
    assert len(stopped.data["not_run"]) == 3
    none = project.run("run", "--resume", "out", "--max-cost-usd", "0", "--json")
    assert len(none.data["not_run"]) == 3
    here = project.run("run", "--resume", "out", "--max-cost-usd", "0.48", "-j", "1", "--json")
    assert here.data["summary"]["pass"] == 4, here.stderr
    more = project.run("run", "--resume", "out", *there(workers), "--json")
    assert (more.exit_code, more.data["summary"]["pass"]) == (0, 6), more.stderr


@pytest.mark.slow
def test_other_limits_and_decisions_are_the_clients(project: Project, workers: DaskCluster) -> None:
    project.write({"eval.yaml": "name: d\n", "never.yaml": FAIL})

    def run(*arguments: str) -> Outcome:
        return project.run("run", ".", "--json", *there(workers), *arguments)

    late = run("--time-limit", "0.001")
    assert (late.data["stopped"]["kind"], late.data["cases"]) == ("time_limit", [])
    failed = run("--trials", "9", "--max-fail", "2")
    assert (failed.exit_code, failed.data["stopped"]["kind"]) == (1, "max_fail"), failed.stderr
    # Two, and at most the one that ran beside the second.
    assert 2 <= len(failed.data["cases"]) <= 3
    decided = run("--trials", "20", "--until-decided")
    (about,) = decided.data["analysis"]["cases"]
    assert about["decision"]["verdict"] == "below"
    ran = len(decided.data["cases"])
    assert ran + len(decided.data["not_needed"]) == 20
    # Trials are looked at in their order, so later ones may end before an early one that is slow.
    assert about["decision"]["trials"] <= ran < 20
    assert decided.data["not_run"] == []


FAMILY = """
    input:
      turns:
        - content: one
          branches:
            - {name: left, turns: [two]}
            - {name: right, turns: [three, four]}
    assertions: [{contains: fine}]
    scripted: [{turn: 3, say: fine}, {say: fine}]
    """


@pytest.mark.slow
def test_trials_with_an_error_run_again_on_workers_and_others_do_not(
    project: Project, workers: DaskCluster
) -> None:
    project.write({"eval.yaml": "name: d\n", "alone.yaml": PASS, "parts.yaml": FAMILY})
    set_mood(project, 3, exit_code=7)
    out = ".skillup/runs/out"
    first = project.run("run", ".", "-e", "moody", *there(workers), "--json", "--out", out)
    statuses = [case["status"] for case in first.data["cases"]]
    jobs = [f"{name}/moody/with_skill/1" for name in ("alone", "parts/left", "parts/right")]
    assert statuses == ["PASS", "PASS", "ERROR"], first.stderr

    set_mood(project)
    again = project.run("run", "--resume", out, "--retry-errors", *there(workers), "--json")
    assert [case["status"] for case in again.data["cases"]] == ["PASS"] * 3, again.stderr
    sent = Counter(event["job"] for event in project.journal() if event["event"] == "trial_sent")
    assert sent == {jobs[0]: 1, jobs[1]: 1, jobs[2]: 2}
    right = project.record(jobs[2])
    # The turn that it shares runs once more, and is counted by the one that has finished.
    assert [turn.get("held_by") for turn in right["turns"]] == [jobs[1], None, None]
    assert (project.root / out / "trials" / jobs[2] / "attempt-1.json").is_file()


SHARING = """
    input: {turns: [one, two]}
    assertions: [{contains: said}]
    scripted: [{when: one, say: fine}, {when: two, say: bad}]
    """


@pytest.mark.slow
def test_shared_turns_count_once_in_budgets_when_the_trials_have_ended(
    project: Project, workers: DaskCluster
) -> None:
    project.write({"eval.yaml": "name: x\n", "c.yaml": SHARING, "d.yaml": SHARING})
    project.write({"engines/priced.yaml": PRICED})
    shared = ("--trials", "2", "--trials-from-turn", "2", "-e", "priced", "-j", "1")
    # A family has three turns of 0.12 USD: a budget stops nothing in its midst.
    budget = ("--max-cost-usd", "0.3", "--json")
    outcome = project.run("run", ".", *there(workers), *shared, *budget)
    assert outcome.data["stopped"]["kind"] == "max_cost_usd", outcome.stderr
    assert [case["case_id"] for case in outcome.data["cases"]] == ["c", "c"]
    assert "0.36" in outcome.data["stopped"]["message"]
    (noted,) = [event for event in project.journal() if event["event"] == "turns_shared"]
    assert (len(noted["jobs"]), [turn["turn_number"] for turn in noted["turns"]]) == (2, [1])
