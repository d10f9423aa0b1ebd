"""A run on a cluster gives what the same run gives here, and ends as it ends here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from tests.support.dask_cluster import DaskCluster
from tests.support.project import Project

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
    "duration_ms",
    "finished_at",
    "prefix_bytes",
    "prefix_sha256",
    "run_id",
    "session_id",
    "session_path",
    "started_at",
    "version",  # of a CLI that was not asked: the client has none
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


@pytest.mark.slow
def test_records_grades_files_and_answers_are_those_of_a_local_run(
    project: Project, cluster: DaskCluster
) -> None:
    """S10: a worker refused what leads out of the suite's own folder; secrets stay masked."""
    project.write(FILES)
    for name in ("one", "two"):
        cluster.start_worker(name, env={"LAB_TOKEN": "sk-of-the-worker"})
    (project.root / "work/suite/scripts/check.sh").chmod(0o755)

    env = {"LAB_TOKEN": "sk-of-the-client"}
    here = project.run("run", "work/suite", "--out", "here", "--json", env=env)
    command = (
        "run",
        "work/suite",
        "--out",
        "away",
        "--json",
        "-v",
        "--executor",
        "dask",
        "--scheduler",
        cluster.address,
    )
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
    with Client(cluster.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        assert [topic for topic in client.get_events() if "skillup" in topic] == []  # F15
    assert str(cluster.root) not in (project.root / "away" / "result.json").read_text()
    # Nothing stays behind at the cluster.
    assert [p for p in (cluster.root / "tmp").iterdir() if p.name.startswith("skillup")] == []
    files = [f.read_bytes() for f in (project.root / "away").rglob("*") if f.is_file()]
    assert any(b"it is ***LAB_TOKEN***" in content for content in files)
    logs = "".join(cluster.log(name) for name in ("one", "two", "scheduler"))
    for secret in ("sk-of-the-worker", "sk-of-the-client"):
        assert not any(secret.encode() in content for content in files)
        assert secret not in away.stderr + logs
    again = project.run("judge", "away", "--json").data
    assert not [case for case in again["cases"] if case.get("changed")]
