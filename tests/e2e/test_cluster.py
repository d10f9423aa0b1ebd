"""`skillup run` on a Dask cluster with the real `claude`, against a scripted model server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.dask_cluster import DaskCluster
from tests.support.model_server import (
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Text,
    WriteFile,
    by_rules,
)
from tests.support.project import Project

pytestmark = pytest.mark.e2e

CASE = """
    id: {id}
    input:
      turns:
        - "one of {id}"
        - content: "write for {id}"
          assertions: [{{tool_called: {{kind: write}}}}, {{files_exist: [out.txt]}}]
        - content: "three of {id}"
          assertions: [{{contains: {{all: ["one of {id}", "write for {id}"]}}}}]
    """


def remember(request: ModelRequest) -> Reply:
    """Answers with all it was told; writes a file when asked to."""
    told = Text("I was told: " + " | ".join(request.user_texts))
    write = Rule(r"^write", [WriteFile("out.txt", "hello"), Text("Wrote it.")])
    return by_rules(write, otherwise=lambda _: told)(request)


def test_conversations_are_resumed_on_workers_that_have_the_key(
    project: Project,
    claude_cli: Path,
    model_server: Callable[..., ModelServer],
    tmp_path: Path,
) -> None:
    server = model_server(remember)
    profile = f"engine: claude_code\ncommand: {claude_cli}\nbase_url: {server.url}\nretries: 0\n"
    project.write(
        {
            "engines/claude.yaml": profile,
            "cases/eval.yaml": "name: lab\nengine: claude\n",
            "cases/a.yaml": CASE.format(id="a"),
            "cases/b.yaml": CASE.format(id="b"),
        }
    )
    cluster = DaskCluster(tmp_path / "cluster")
    try:
        for name in ("one", "two"):
            cluster.start_worker(name, env={"ANTHROPIC_API_KEY": "sk-of-the-workers"})
        # The client has no key: it needs none.
        there = ("--executor", "dask", "--scheduler", cluster.address)
        outcome = project.run("run", "cases", *there, "--json")
    finally:
        cluster.close()
    assert outcome.exit_code == 0, outcome.stderr
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "PASS"]
    sent = [event["worker"] for event in project.journal() if event["event"] == "trial_sent"]
    assert len(set(sent)) == 2
    record = project.record("a/claude/with_skill/1")
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    assert record["engine"]["version"]
