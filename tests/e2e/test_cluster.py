"""`skillup run` on a Dask cluster with the real `claude`, against a scripted model server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Lab, remembering
from tests.support.dask_cluster import DaskCluster
from tests.support.model_server import HttpError, ModelRequest, Reply, Rule, Text, WriteFile

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


remember = remembering(Rule(r"^write", [WriteFile("out.txt", "hello"), Text("Wrote it.")]))


@pytest.mark.slow
def test_conversations_are_resumed_and_refusals_are_waited_out_on_workers_that_have_the_key(
    lab: Lab, tmp_path: Path
) -> None:
    asked: list[str] = []

    def refuse_a_once(request: ModelRequest) -> Reply:
        asked.append(request.latest)
        if request.latest == "one of a" and asked.count("one of a") == 1:
            return HttpError(429, "slow down: try again in 1s")
        return remember(request)

    cases = {f"cases/{name}.yaml": CASE.format(id=name) for name in ("a", "b")}
    project, _ = lab(refuse_a_once, cases)
    cluster = DaskCluster(tmp_path / "cluster")
    try:
        for name in ("one", "two"):
            cluster.start_worker(name, env={"ANTHROPIC_API_KEY": "sk-of-the-workers"})
        # The client has no key: it needs none.
        there = ("--executor", "dask", "--scheduler", cluster.address)
        outcome = project.run("run", "cases", "-e", "claude", *there, "--json")
    finally:
        cluster.close()
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "PASS"], outcome.stderr
    record = project.record("a/claude/with_skill/1")
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    assert record["engine"]["version"]
    (note,) = record["turns"][0]["notes"]
    assert note.startswith("the provider refused the message once (rate_limit)")
    # The other worker is not told of it.
    assert not [n for t in project.record("b/claude/with_skill/1")["turns"] for n in t["notes"]]
