"""The server of `skillup view`: its list of runs, which requests it answers, and what."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from skillup.reports.result import build_result
from skillup.reports.server import Guard, NotServedError, Served
from skillup.store import RunDirectory
from skillup.store.files import pack
from tests.support.large_runs import write_large_run
from tests.support.project import Project
from tests.support.stored import a_checkpoint, a_grade, a_record, change
from tests.support.viewing import Viewer, viewing

JOBS = ["a/e/with_skill/1", "b/e/with_skill/1"]
ODD = "a b/50%/?#/with_skill/1"
OF_ODD = "api/runs/odd/trials"
_NAMES = """
    / .. record.json/ record.json/x record.json%00 record.jso raw files files/ %2e%2e/secret
    ..%5csecret /etc/passwd %2fetc%2fpasswd %c0%ae%c0%ae/x files/out/%2e%2e/%2e%2e/secret
    run.sqlite ../../run.sqlite %0a %ff%fe
    """
NO_FILES = ("", "a/" * 99, *_NAMES.split())


def test_a_run_with_a_baseline_is_counted_by_its_trials_with_the_skill(tmp_path: Path) -> None:
    jobs = [JOBS[0], "b/e/without_skill/1"]
    served = Served(tmp_path)
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": jobs}) as run:
        grades = {jobs[0]: a_grade("a")}
        update = {"variant": "without_skill", "status": "FAIL"}
        grades[jobs[1]] = a_grade("b").model_copy(update=update)
        for job, grade in grades.items():
            run.write_record(job, a_record(grade.case_id))
            run.write_grade(job, grade)
        run.sync()
        (running,) = served.listing()["runs"]
        run.write_result(build_result("r", "", list(grades.values()), [], 10))
    (finished,) = served.listing()["runs"]
    assert (running["status"], finished["status"]) == ("running", "finished")
    for short in (running, finished):
        assert (short["done"], short["planned"]) == (2, 2)
        assert short["counts"] == {"PASS": 1, "FAIL": 0, "ERROR": 0, "SKIP": 0}


def test_a_run_that_goes_on_is_read_whole_and_each_step_is_noticed(tmp_path: Path) -> None:
    served = Served(tmp_path, index="none")
    with RunDirectory.create(tmp_path / "r", {"run_id": "r", "jobs": JOBS}) as run:
        stamps = [served.stamp("r")]
        for step in (
            lambda: run.begin_trial(JOBS[0]).streams.open("turn-01.stdout.jsonl").close(),
            lambda: run.write_checkpoint(JOBS[0], a_checkpoint()),
            lambda: run.write_record(JOBS[0], a_record("a")),
        ):
            step()
            run.sync()
            stamps.append(served.stamp("r"))
        assert served.index("r")["rows"][0]["reason"] == "being judged"
        run.write_grade(JOBS[0], a_grade("a"))
        run.sync()
        stamps.append(served.stamp("r"))
        assert served.index("r")["rows"][0]["status"] == "PASS"
        assert len(set(stamps)) == 5
        assert served.stamp("r") == served.stamp("r")
        listed = served.listing()["runs"][0]
        assert (listed["status"], listed["planned"], listed["done"]) == ("running", 2, 1)
        before = served.folder_stamp()
        assert served.folder_stamp() == before
        run.begin_trial(JOBS[1])
        run.sync()
        assert served.folder_stamp() != before


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    good = write_large_run(tmp_path / "good", 1, turns=1) / "run.sqlite"
    bad = {"empty": b"", "torn": good.read_bytes()[:9000], "other": b"{}", "deep": b"[" * 100_000}
    for name, content in bad.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.sqlite").write_bytes(content)
    (tmp_path / "deep/run.sqlite").write_bytes(good.read_bytes())
    change(tmp_path / "deep", "UPDATE run SET json = ?", pack(bad["deep"]))
    listed = {run["id"]: run["status"] for run in Served(tmp_path).listing()["runs"]}
    assert listed == {"good": "finished", **dict.fromkeys(bad, "damaged")}


def test_only_what_is_in_the_folder_is_served(tmp_path: Path) -> None:
    write_large_run(tmp_path / "runs/a", 1, turns=1)
    write_large_run(tmp_path / "b", 1, turns=1)
    served = Served(tmp_path / "runs")
    for name in ("../b", "b", "", ".", "a/", "./a", str(tmp_path / "b")):
        with pytest.raises(NotServedError):
            served.path(name)
    alone = Served(tmp_path, only="b")
    assert alone.ids() == ["b"]
    with pytest.raises(NotServedError):
        alone.path("runs")


def test_two_runs_beside_each_other_do_not_wait_for_ever(tmp_path: Path) -> None:
    for name, cases in (("a", 2), ("b", 3)):
        write_large_run(tmp_path / name, cases, turns=1, seed=cases)
    served = Served(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(served.index, *pair) for pair in [("a", "b"), ("b", "a")] * 10]
        sides = [one.result(timeout=60)["sides"] for one in asked]
        found = [side and side["b"]["run_id"] for side in sides]
    assert found == ["a", "b"] * 10
    alone, beside = served.detail("a", 2), served.detail("b", 5, against="a")
    assert (beside["n"], beside["turns"]) == (5, alone["turns"])
    assert alone["raw"] == beside["raw"], "links lead into the run it is of"


# Which requests are answered.


GUARD = Guard(7575, "secret")
OWN = ("Host", "127.0.0.1:7575")


def refused(*given: tuple[str, str]) -> bool:
    message = Message()
    for name, value in given:
        message[name] = value
    return GUARD.refusal(message) is not None


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7575", "localhost:7575", "LOCALHOST:7575", "[::1]:7575"]
)
def test_this_machines_own_names_are_answered(host: str) -> None:
    assert not refused(("Host", host))


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:7575", "127.0.0.1", "localhost", "localhost:7576"),
        *("localhost:7575.evil.example", "localhost.evil.example:7575", "2130706433:7575"),
        *("127.0.0.1:7575@evil.example", "evil.example@127.0.0.1:7575", "localhost.:7575"),
        *("127.0.0.2:7575", "0.0.0.0:7575", "[::1]", "[::]:7575", "::1:7575"),
        *("localhost:07575", "localhost:", ":7575", "", "localhost:7575, evil.example"),
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    assert refused(("Host", host))


def test_a_host_has_to_be_named_once() -> None:
    assert refused()
    assert refused(OWN, ("Host", "evil.example"))


@pytest.mark.parametrize(
    ("name", "value", "answered"),
    [
        ("Origin", "http://127.0.0.1:7575", True),
        ("Origin", "http://localhost:7575", True),
        ("Sec-Fetch-Site", "same-origin", True),
        ("Sec-Fetch-Site", "none", True),
        ("Origin", "http://evil.example", False),
        ("Origin", "http://evil.example:7575", False),
        ("Origin", "https://127.0.0.1:7575", False),
        ("Origin", "http://127.0.0.1:8000", False),
        ("Origin", "null", False),
        ("Origin", "http://127.0.0.1:7575/path", False),
        ("Origin", "http://[bad", False),
        ("Sec-Fetch-Site", "cross-site", False),
        ("Sec-Fetch-Site", "same-site", False),
        ("Sec-Fetch-Site", "anything", False),
    ],
)
def test_only_the_page_itself_may_ask(name: str, value: str, answered: bool) -> None:
    assert refused(OWN, (name, value)) != answered


def test_the_secret_is_the_first_part_of_the_path() -> None:
    assert GUARD.inner_path("/secret/") == ""
    assert GUARD.inner_path("/secret/api/runs?x=1#y") == "api/runs"
    for wrong in ("/", "/secret", "/SECRET/", "/secre/t", "//secret/", "http://x/secret/", "*", ""):
        assert GUARD.inner_path(wrong) is None


# The server, asked over a real connection.


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A folder with two runs, a damaged one, and what is no run."""
    project = Project(tmp_path_factory.mktemp("view"))
    runs = project.root / ".skillup/runs"
    write_large_run(runs / "a", 12, turns=2)
    write_large_run(runs / "b", 10, turns=2, seed=2)
    write_large_run(runs / "torn", 2)
    (runs / "torn/run.sqlite").write_bytes(b"SQLite format 3")
    (runs / "notes").mkdir()
    with RunDirectory.create(runs / "odd", {"run_id": "odd", "jobs": [ODD]}) as run:
        place = run.begin_trial(ODD)
        place.keep_artifact("out/50% <b>.html", b"<script>alert(1)</script>")
        place.keep_artifact("../../secret", b"its own")
        run.write_record(ODD, a_record())
        run.remove_scratch(ODD)
    (project.root / ".skillup/secret").write_text("s")
    with viewing(project) as found:
        yield found


def test_all_runs_are_listed_and_those_that_cannot_be_read_say_why(viewer: Viewer) -> None:
    runs = {run["id"]: run for run in viewer.get("api/runs").data["runs"]}

    assert set(runs) == {"a", "b", "odd", "torn"}
    assert runs["a"]["status"] == "finished"
    assert runs["a"]["counts"] == {"PASS": 11, "FAIL": 1, "ERROR": 0, "SKIP": 0}
    assert runs["a"]["pass_rate"] == pytest.approx(11 / 12)
    assert (runs["a"]["planned"], runs["a"]["done"]) == (12, 12)
    assert runs["torn"]["status"] == "damaged"
    assert "run.sqlite: it is damaged" in runs["torn"]["problem"]


def test_to_list_runs_keeps_no_file_open(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        RunDirectory.create(tmp_path / name, {"run_id": name}).close()
    before = psutil.Process().num_fds()
    listed = Served(tmp_path)
    assert [run["status"] for run in listed.listing()["runs"]] == ["unfinished"] * 3
    assert psutil.Process().num_fds() == before


def test_a_run_has_an_index_and_its_conversations(viewer: Viewer) -> None:
    index = viewer.get("api/runs/a/index.json").data
    detail = viewer.get("api/runs/a/trials/3.json").data

    assert index["mode"] == "view"
    assert [row["n"] for row in index["rows"]] == list(range(1, 13))
    assert detail["case_id"] == index["rows"][2]["case_id"]
    href = detail["raw"][0]["href"]
    assert viewer.get(href).status == 200, "links are relative to the page"


def test_what_is_not_there_is_not_found(viewer: Viewer) -> None:
    runs = ("nowhere", "notes", "../runs/a", "..%2fruns%2fa", "%2e%2e", "a%00")
    trials = ("0", "99", "-1", "1e3", "%D9%A1")
    for path in (
        *("api", "api/", "api/runs/", "api/runs/a/nothing", "index.html"),
        *(f"api/runs/{run}/index.json" for run in runs),
        *(f"api/runs/a/trials/{trial}.json" for trial in trials),
    ):
        reply = viewer.get(path)
        assert reply.status == 404, path
        assert set(reply.data) == {"error", "hint"}


def test_files_of_a_trial_are_never_anything_but_text(viewer: Viewer) -> None:
    links = {link["name"]: link["href"] for link in viewer.get(f"{OF_ODD}/1.json").data["raw"]}
    assert set(links) == {"record.json", "files/out/50% <b>.html", "files/../../secret"}
    page = viewer.get(links["files/out/50% <b>.html"])
    assert page.body == b"<script>alert(1)</script>"
    assert page.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in page.headers["Content-Security-Policy"]
    assert viewer.get(links["files/../../secret"]).body == b"its own", "a name is no path"


@pytest.mark.parametrize(
    "asked",
    [
        *("", "/", ".", "run.sqlite", "../secret", "..%2fsecret", "%2e%2e/secret", "lock"),
        *("/etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "nowhere/record.json"),
        *(f"{job}/{name}" for job in ("JOB", "..", "%2e%2e%2f", "a" * 5000) for name in NO_FILES),
    ],
)
def test_nothing_but_files_of_trials_is_served(viewer: Viewer, asked: str) -> None:
    reply = viewer.get(f"api/runs/odd/files/{asked.replace('JOB', quote(ODD, safe=''))}")
    assert reply.status in (400, 404), reply.body[:200]


@pytest.mark.parametrize("path", ["", "api/runs", "api/runs/a/files/x", "nothing"])
def test_every_answer_is_guarded(viewer: Viewer, path: str) -> None:
    headers = viewer.get(path).headers
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Access-Control-Allow-Origin"] is None


def test_without_the_secret_there_is_nothing(viewer: Viewer) -> None:
    assert viewer.get(headers={"Host": f"localhost:{viewer.port}"}).status == 200
    for forged in ({"Host": "evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert viewer.get("api/runs", headers=forged).status == 403
    for target in ("/", "/api/runs", "/wrong/api/runs", viewer.path[:-1], viewer.path.upper()):
        assert viewer.ask(target).status == 404


def test_it_is_for_reading_only(viewer: Viewer) -> None:
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "X"):
        reply = viewer.get(method=method)
        assert reply.status == (405 if method == "POST" else 501)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_server_goes_on(viewer: Viewer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=30) as connection:
        connection.sendall(sent.replace(b"{port}", str(viewer.port).encode()))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith((b"HTTP/1.0 4", b"HTTP/1.0 505")), answer[:100]
    assert b"Traceback" not in answer
    assert viewer.get("api/runs").status == 200
