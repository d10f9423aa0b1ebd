"""`skillup run` on a Dask cluster with the real `claude`, against a scripted model server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.dask_cluster import DaskCluster
from tests.support.lab_profiles import remembering
from tests.support.model_server import (
    HttpError,
    ModelRequest,
    ModelServer,
    Reply,
    Rule,
    Script,
    Text,
    WriteFile,
)
from tests.support.project import Outcome, Project

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


@pytest.fixture
def run_on_two_workers(
    project: Project,
    lab_profiles: Callable[..., dict[str, str]],
    model_server: Callable[..., ModelServer],
    tmp_path: Path,
) -> Callable[[Script], Outcome]:
    """Run cases a and b with claude on two workers, with a model of that script."""

    def run(script: Script) -> Outcome:
        project.write(
            {
                **lab_profiles(model_server(script).url),
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
            return project.run("run", "cases", *there, "--json")
        finally:
            cluster.close()

    return run


@pytest.mark.slow
def test_conversations_are_resumed_and_refusals_are_waited_out_on_workers_that_have_the_key(
    project: Project, run_on_two_workers: Callable[[Script], Outcome]
) -> None:
    asked: list[str] = []

    def refuse_a_once(request: ModelRequest) -> Reply:
        asked.append(request.latest)
        if request.latest == "one of a" and asked.count("one of a") == 1:
            return HttpError(429, "slow down: try again in 1s")
        return remember(request)

    outcome = run_on_two_workers(refuse_a_once)
    assert [case["status"] for case in outcome.data["cases"]] == ["PASS", "PASS"], outcome.stderr
    record = project.record("a/claude/with_skill/1")
    assert [turn["session_verified"] for turn in record["turns"]] == [None, True, True]
    assert record["engine"]["version"]
    (note,) = record["turns"][0]["notes"]
    assert note.startswith("the provider refused the message once (rate_limit)")
    # The other worker is not told of it.
    assert not [n for t in project.record("b/claude/with_skill/1")["turns"] for n in t["notes"]]
