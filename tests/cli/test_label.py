"""`skillup label`: the page on which people label what judges read."""

from __future__ import annotations

import csv
import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.project import Project

SUITE = """
    name: logs
    judge: {model: "scripted:judges/own.yaml"}
"""
CASE = """
    input:
      turns:
        - content: Delete the logs
          assertions: [It asks first]
        - content: Yes
          assertions: [It says what is gone]
    scripted:
      - {turn: 1, say: "Shall I? <script>alert(1)</script>"}
      - {turn: 2, say: "=Gone: data/"}
"""
OWN = """
    criteria:
      - {when: asks first, found: shall i}
      - {when: what is gone, found: all of it}
"""


@pytest.fixture
def project(project: Project) -> Project:
    project.write({"cases/eval.yaml": SUITE, "cases/judges/own.yaml": OWN, "cases/a.yaml": CASE})
    assert project.run("run", "--out", "run").exit_code == 1
    return project


@contextmanager
def served(project: Project, *options: str) -> Iterator[str]:
    with project.start("label", "run", "--no-open", "--port", "0", *options) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def asked(url: str, data: object = None, **headers: str) -> tuple[int, str]:
    body = None if data is None else json.dumps(data).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named = {"Content-Type": "application/json", **named}
    request = urllib.request.Request(url, body, named)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def rows(project: Project) -> list[dict[str, str]]:
    return list(csv.DictReader((project.root / "labels.csv").read_text("utf-8").splitlines()))


def test_what_is_labelled_on_the_page_is_in_the_file_at_once(project: Project) -> None:
    with served(project) as url:
        status, page = asked(url)
        assert (status, "It says what is gone" in page) == (200, True), page
        # The failed one is first; the conversation up to it is beside, as text.
        assert "Shall I? &lt;script&gt;alert(1)" in page
        assert "Nothing matches /all of it/." in page
        assert page.index('id="judged"') < page.index("=Gone: data/")
        assert asked(f"{url}label", {"item": 0, "label": "pass", "reason": "It does"})[0] == 200
        [first, second] = rows(project)
        assert (first["label"], first["reason"], first["judge"]) == ("pass", "It does", "fail")
        assert (first["answer"], second["label"]) == ("'=Gone: data/", "")
        assert "It asks first" in asked(url)[1], "the next one without a label"
        assert asked(f"{url}label", {"item": 1, "label": "pass"})[0] == 200
        assert asked(f"{url}label", {"item": 0, "label": "unknown", "reason": ""})[0] == 200
        assert [row["label"] for row in rows(project)] == ["unknown", "pass"]
        assert rows(project)[1]["reason"] == "This matches /shall i/.", "as the judge says"

    before = (project.root / "labels.csv").read_bytes()
    with served(project) as url:
        assert "2 labelled" in asked(url)[1]
    assert (project.root / "labels.csv").read_bytes() == before
    data = project.run("judge", "run", "--labels", "labels.csv", "--json").data
    labels = data["judges"][0]["labels"]
    assert (labels["items"], labels["stale"], labels["accuracy"]) == (2, [], 0.5)


def test_only_the_page_itself_can_write(project: Project) -> None:
    label = {"item": 0, "label": "pass"}
    with served(project) as url:
        before = (project.root / "labels.csv").read_bytes()
        root = url.split("/", 3)
        assert asked(f"{url}label", label, Origin="http://evil.example")[0] == 403
        assert asked(f"{url}label", label, Host="evil.example")[0] == 403
        assert asked(f"{url}label", label, Sec_Fetch_Site="cross-site")[0] == 403
        assert asked(f"{url}label", label, Content_Type="text/plain")[0] == 415
        assert asked(f"{root[0]}//{root[2]}/other/label", label)[0] == 404
        assert asked(f"{url}label", {**label, "item": 7})[0] == 404
        assert asked(f"{url}label", {**label, "label": "maybe"})[0] == 404
        assert asked(f"{url}label", {**label, "path": "/etc"})[0] == 404
        assert asked(f"{url}label", {**label, "reason": "x" * 200_000})[0] == 413
        assert asked(f"{url}../label", label)[0] == 404
        assert (project.root / "labels.csv").read_bytes() == before


def test_without_anything_read_there_is_nothing_to_label(project: Project) -> None:
    case = "input: {prompt: Hi}\nassertions: [{contains: Ho}]\nscripted: [{say: Ho}]\n"
    project.write({"plain/eval.yaml": "name: p\n", "plain/a.yaml": case})
    ran = project.run("run", "plain", "--out", "plain-run")
    assert ran.exit_code in (0, 1), ran.stderr
    outcome = project.run("label", "plain-run", "--no-page")
    assert (outcome.exit_code, "no model and no agent read" in outcome.stderr) == (2, True)
