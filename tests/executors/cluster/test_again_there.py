"""`--retry-errors` on a cluster: trials with an error are held again there, others are not."""

from __future__ import annotations

from collections import Counter

from tests.support.dask_cluster import DaskCluster
from tests.support.moody import set_mood
from tests.support.project import Project

OUT = ".skillup/runs/out"
ALONE = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"
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


def test_trials_with_an_error_are_held_again_on_workers_and_others_are_not(
    project: Project, cluster: DaskCluster
) -> None:
    project.write({"eval.yaml": "name: d\n", "alone.yaml": ALONE, "parts.yaml": FAMILY})
    set_mood(project, 3, exit_code=7)
    cluster.start_worker("one")
    there = ("--executor", "dask", "--scheduler", cluster.address, "--json")
    first = project.run("run", ".", "-e", "moody", *there, "--out", OUT)
    statuses = [case["status"] for case in first.data["cases"]]
    jobs = [f"{name}/moody/with_skill/1" for name in ("alone", "parts/left", "parts/right")]
    assert statuses == ["PASS", "PASS", "ERROR"], first.stderr

    set_mood(project)
    again = project.run("run", "--resume", OUT, "--retry-errors", *there)
    assert [case["status"] for case in again.data["cases"]] == ["PASS"] * 3, again.stderr
    sent = Counter(event["job"] for event in project.journal() if event["event"] == "trial_sent")
    assert sent == {jobs[0]: 1, jobs[1]: 1, jobs[2]: 2}
    right = project.record(jobs[2])
    # The turn that it shares is held once more, and counted by the one that has finished.
    assert [turn.get("held_by") for turn in right["turns"]] == [jobs[1], None, None]
    assert (project.root / OUT / "trials" / jobs[2] / "attempt-1.json").is_file()
