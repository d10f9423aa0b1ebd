"""Runs at URLs: written, read, resumed and merged in a bucket of a real S3 server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from skillup.load.yaml_reader import parse_yaml
from skillup.store import RunDirectory
from tests.docs.blocks import ROOT, blocks_of
from tests.support.project import Project
from tests.support.s3_server import BUCKET, S3Server, s3_server
from tests.support.viewing import viewing

CASE = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as started:
        yield started


@pytest.fixture
def bucket(server: S3Server) -> S3Server:
    """Empty."""
    files = server.files()
    if files.ls(BUCKET):
        files.rm(f"{BUCKET}/", recursive=True)
        files.mkdir(BUCKET) if not files.exists(BUCKET) else None
    return server


@pytest.fixture
def two_cases(project: Project) -> Project:
    return project.write({"eval.yaml": "name: x\n", "a.yaml": CASE, "b.yaml": CASE})


def work(project: Project) -> list[Path]:
    """Runs that are in the user's cache because they were not uploaded."""
    return [*project.home.glob(".cache/skillup/runs/*/work/*/run.sqlite")]


def test_a_run_at_a_url_is_read_by_every_verb(two_cases: Project, bucket: S3Server) -> None:
    project, env, url = two_cases, bucket.environment, f"s3://{BUCKET}/team/monday"
    ran = project.run("run", ".", "--out", url, "--report", "junit", env=env)
    assert ran.exit_code == 0, ran.stderr
    assert f"report: {url}/junit.xml" in ran.stderr
    assert bucket.names("team/monday") == {"run.sqlite", "result.json", "junit.xml"}
    assert work(project) == []

    shown = project.run("show", url, "*", "--json", env=env)
    assert [one["grade"]["status"] for one in shown.data["trials"]] == ["PASS", "PASS"]
    judged = project.run("judge", url, "--json", env=env)
    assert judged.exit_code == 0, judged.stderr
    assert len(judged.data["cases"]) == 2
    reported = project.run("report", url, "--report", "markdown,html", env=env)
    assert reported.stdout.splitlines() == [f"{url}/summary.md", f"{url}/report.html"]
    assert {"summary.md", "report.html"} < bucket.names("team/monday")
    assert project.run("export", url, env=env).exit_code == 2
    exported = project.run("export", url, "--format", "files", "--out", "files", env=env)
    assert exported.exit_code == 0, exported.stderr
    assert (project.root / "files" / "run.json").is_file()
    project.run("run", ".", "--out", "here", env=env)
    compared = project.run("compare", url, "here", env=env)
    assert compared.exit_code == 0, compared.stderr
    again = project.run("run", ".", "--out", url, env=env)
    assert again.exit_code == 2
    assert f"{url} holds a run already" in again.stderr
    assert sorted(path.name for path in project.root.iterdir() if ":" in path.name) == []


def test_shards_are_merged_in_the_bucket(two_cases: Project, bucket: S3Server) -> None:
    project, env, url = two_cases, bucket.environment, f"s3://{BUCKET}/night"
    for index in "12":
        out = f"{url}/shard-{index}"
        ran = project.run("run", ".", "--shard", f"{index}/2", "--out", out, env=env)
        assert ran.exit_code == 0, ran.stderr
    shards = [f"{url}/shard-1", f"{url}/shard-2"]
    merged = project.run("merge", *shards, "--out", f"{url}/all", "--json", env=env)
    assert merged.exit_code == 0, merged.stderr
    assert [case["status"] for case in merged.data["cases"]] == ["PASS", "PASS"]
    assert bucket.names("night/all") == {"run.sqlite", "result.json"}
    assert project.run("judge", f"{url}/all", env=env).exit_code == 0


def test_the_jobs_of_the_page_on_many_machines_shard_and_merge(
    project: Project, bucket: S3Server
) -> None:
    blocks = blocks_of(ROOT / "docs" / "cluster.md")
    (shown,) = (b.text for b in blocks if b.marker and b.marker.value == "shards")
    workflow: Any = parse_yaml(shown, Path("night.yaml")).data
    project.write({"cases/eval.yaml": "name: x\n"} | {f"cases/{n}.yaml": CASE for n in "abc"})
    runs = [
        (str(part), step["run"])
        for job in workflow["jobs"].values()
        for part in job.get("strategy", {"matrix": {"part": [0]}})["matrix"]["part"]
        for step in job["steps"]
        if step.get("run", "").startswith("skillup ")
    ]
    assert len(runs) == 4
    night = workflow["env"]["NIGHT"].replace("${{ github.run_id }}", "7")
    for part, command in runs:
        words = shlex.split(command.replace("${{ matrix.part }}", part).replace("$NIGHT", night))
        done = project.run(*words[1:], env=bucket.environment)
        assert done.exit_code == 0, done.stderr
    assert bucket.names("log-keeper/7/all") == {"run.sqlite", "result.json", "junit.xml"}


def test_a_run_at_a_url_is_viewed(two_cases: Project, bucket: S3Server) -> None:
    env, url = bucket.environment, f"s3://{BUCKET}/viewed"
    assert two_cases.run("run", ".", "--out", url, env=env).exit_code == 0
    with viewing(two_cases, url, env=env) as viewer:
        assert viewer.get().status == 200


SLOW = """\
input: {prompt: hi}
assertions: [{contains: fine}]
depends_on: [a]
scripted: [{steps: [{run: "while [ ! -e GO ]; do sleep 0.05; done"}], say: fine}]
"""


def test_a_run_that_was_killed_goes_on_elsewhere_from_its_last_checkpoint(
    project: Project, bucket: S3Server, tmp_path: Path
) -> None:
    go, url = tmp_path / "go", f"s3://{BUCKET}/killed"
    project.write({"eval.yaml": "name: x\n", "a.yaml": CASE, "b.yaml": SLOW})
    case = project.root / "b.yaml"
    case.write_text(case.read_text().replace("GO", str(go)))
    env = {**bucket.environment, "SKILLUP_UPLOAD_SECONDS": "0.1"}
    with project.start("run", ".", "--out", url, env=env) as running:
        while not _one_goes_on(bucket, "killed", tmp_path):
            assert running.poll() is None
        running.kill()
        running.wait()
    go.touch()
    elsewhere = {**env, "HOME": str(tmp_path / "elsewhere")}
    (tmp_path / "elsewhere").mkdir()
    resumed = project.run("run", "--resume", url, "--json", env=elsewhere)
    assert resumed.exit_code == 0, resumed.stderr
    assert len(resumed.data["cases"]) == 2
    # What is left of the one that was killed is older than what is there now.
    again = project.run("run", "--resume", url, "--json", env=env)
    assert again.exit_code == 0, again.stderr
    assert work(project) == []


def _one_goes_on(bucket: S3Server, name: str, folder: Path) -> bool:
    """Whether one trial of the run in the bucket has finished and the other begun."""
    if "run.sqlite" not in bucket.names(name):
        return False
    copy = folder / "copy"
    copy.mkdir(exist_ok=True)
    bucket.files().get_file(f"{BUCKET}/{name}/run.sqlite", str(copy / "run.sqlite"))
    with RunDirectory.open(copy) as run:
        return bool(run.finished_jobs()) and len(set(run.begun_jobs())) == 2


def test_a_failed_checkpoint_is_a_warning_and_a_run_that_cannot_be_uploaded_is_kept(
    project: Project, tmp_path: Path
) -> None:
    """What is at the URL becomes a file while the run goes on, so nothing can be put there."""
    store, on = tmp_path / "store" / "run", tmp_path / "on"
    break_it = f"until [ -f {store} ]; do rm -rf {store}; touch {store}; done"
    first = CASE.replace("{say", f'{{steps: [{{run: "{break_it}"}}], say')
    project.write({"eval.yaml": "name: x\n", "a.yaml": first, "b.yaml": SLOW})
    case = project.root / "b.yaml"
    case.write_text(case.read_text().replace("GO", str(on)))
    url = f"file://{store}"
    with project.start("run", ".", "--out", url, env={"SKILLUP_UPLOAD_SECONDS": "0.1"}) as running:
        assert running.stderr is not None
        warned = ""
        while "warning: " not in warned:
            warned += running.stderr.readline()
            assert running.poll() is None, warned
        on.touch()
        _, said = running.communicate()
    assert running.returncode == 3, said
    (kept,) = work(project)
    assert str(kept.parent) in said
    assert f"skillup run --resume {url}" in said
    refused = project.run("run", ".", "--out", url)
    assert (refused.exit_code, f"a run for {url} was not uploaded" in refused.stderr) == (2, True)
    store.unlink()
    resumed = project.run("run", "--resume", url)
    assert resumed.exit_code == 0, resumed.stderr
    assert json.loads((store / "result.json").read_text())["summary"]["pass"] == 2
    assert work(project) == []


def test_what_another_program_wrote_there_meanwhile_stays(project: Project, tmp_path: Path) -> None:
    store, other = tmp_path / "store" / "run", tmp_path / "other"
    other.write_text("another's")
    case = CASE.replace("{say", f'{{steps: [{{run: "cp {other} {store}/run.sqlite"}}], say')
    project.write({"eval.yaml": "name: x\n", "a.yaml": case})
    env = {"SKILLUP_UPLOAD_SECONDS": "3600"}
    ran = project.run("run", ".", "--out", f"file://{store}", env=env)
    assert ran.exit_code == 3, ran.stderr
    assert "was written by another program meanwhile" in ran.stderr
    assert str(work(project)[0].parent) in ran.stderr
    assert (store / "run.sqlite").read_text() == "another's"


@pytest.mark.parametrize(
    ("url", "env", "code", "words"),
    [
        ("s3://nowhere/run", {}, 3, ["bucket", "s3://nowhere/run"]),
        (
            f"s3://{BUCKET}/run",
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
            3,
            ["credentials", "AWS_ACCESS_KEY_ID"],
        ),
        ("s3:/bucket/run", {}, 2, ["two slashes"]),
        ("s3://", {}, 2, ["incomplete", "s3://bucket/nights/monday"]),
        ("nothing://bucket/run", {}, 2, ["no such kind of URL"]),
        ("gs://bucket/run", {}, 2, ["gcsfs", "install it beside skillup"]),
    ],
)
def test_what_is_wrong_with_a_store_is_said_before_anything_runs(
    url: str,
    env: Mapping[str, str],
    code: int,
    words: list[str],
    two_cases: Project,
    bucket: S3Server,
) -> None:
    before = sorted(two_cases.root.iterdir())
    ran = two_cases.run("run", ".", "--out", url, env={**bucket.environment, **env})
    assert (ran.exit_code, "Traceback" in ran.stderr) == (code, False), ran.stderr
    assert [word for word in words if word not in ran.stderr] == []
    assert (sorted(two_cases.root.iterdir()), work(two_cases)) == (before, [])


def test_a_run_that_is_not_there_and_a_password_in_a_url(
    two_cases: Project, bucket: S3Server
) -> None:
    missing = two_cases.run("show", f"s3://{BUCKET}/none", env=bucket.environment)
    assert missing.exit_code == 2
    assert f"there is no run at s3://{BUCKET}/none" in missing.stderr
    for kind, code in (("nothing", 2), ("s3", 3)):
        wrong = two_cases.run("show", f"{kind}://me:hunter2secret@h/run", env=bucket.environment)
        assert (wrong.exit_code, "hunter2secret" in wrong.stderr) == (code, False), wrong.stderr


def test_without_the_extra_the_message_says_what_to_install(
    two_cases: Project, tmp_path: Path
) -> None:
    (tmp_path / "s3fs.py").write_text("raise ImportError('No module named s3fs')\n")
    ran = two_cases.run("run", ".", "--out", "s3://bucket/run", env={"PYTHONPATH": str(tmp_path)})
    assert ran.exit_code == 2, ran.stderr
    assert "pip install 'skillup-eval[remote]'" in ran.stderr
