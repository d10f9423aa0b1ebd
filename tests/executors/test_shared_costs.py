"""Shared turns that a run has paid for count, also if it was killed before a trial had them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import GUARD_SECONDS, Project

CASE = """
    input:
      turns:
        - content: begin
          branches: [{{name: x, turns: [wait]}}, {{name: y, turns: [wait]}}]
    assertions: [{{contains: fine}}]
    scripted:
      - {{when: ^begin, say: fine, usage: {{input_tokens: 1000, output_tokens: 0}}}}
      - when: ^wait
        steps: [{{run: "while ! test -e {flag}; do sleep 0.05; done"}}]
        say: fine
        usage: {{input_tokens: 10, output_tokens: 0}}
    """


def noted(run: Path) -> list[dict[str, Any]]:
    journal = run / "events.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    events = [json.loads(line) for line in lines]
    return [event for event in events if event["event"] == "turns_shared"]


@pytest.mark.slow
def test_what_shared_turns_took_counts_after_a_kill_and_counts_once(
    project: Project, tmp_path: Path
) -> None:
    flag = tmp_path / "go-on"
    project.write({"eval.yaml": "name: d\n", "c.yaml": CASE.format(flag=flag)})
    run = project.root / "out"
    for times, arguments in enumerate([[".", "--out", "out"], ["--resume", "out"]], start=1):
        with project.start("run", *arguments, "--quiet") as process:
            end = time.monotonic() + GUARD_SECONDS
            while len(noted(run)) < times and time.monotonic() < end:
                time.sleep(0.02)
            process.kill()
            process.wait()
    assert [event["jobs"] for event in noted(run)] == [
        ["c/x/scripted/with_skill/1", "c/y/scripted/with_skill/1"]
    ] * 2
    stopped = project.run("run", "--resume", "out", "--max-tokens", "2000", "--json")
    assert stopped.data["stopped"]["message"] == "the budget of 2000 tokens is used up (2000)"
    assert len(stopped.data["not_run"]) == 2
    flag.touch()
    whole = project.run("run", "--resume", "out", "--max-tokens", "3021", "--json")
    assert whole.exit_code == 0, whole.stderr
    assert whole.data["summary"]["usage"]["input_tokens"] == 1020
