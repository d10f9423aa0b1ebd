"""The page as one file: its data in its place, below its limit, with pictures that are small."""

from __future__ import annotations

import base64
import hashlib
import random
import re
import typing
from pathlib import Path

import pytest

from skillup.judges import grade_record
from skillup.reports.html.build import html_report, packed, page_html
from skillup.reports.html.detail import ORDINARY, detail_of
from skillup.reports.html.run_files import RawFiles
from skillup.reports.result import ADVICE, error_data
from skillup.schema.record import ErrorKind, TurnError
from skillup.store import RunDirectory
from skillup.store.files import pack, unpack
from tests.docs.blocks import PAGES, tables_of
from tests.reports.page.viewer_types import TYPES, typescript
from tests.support.large_runs import write_large_run
from tests.support.pages import marked, page_of
from tests.support.pictures import gif, png
from tests.support.project import Project
from tests.support.records import call, make_record, make_turn, read_file
from tests.support.stored import change

NASTY = "</script><script>alert(1)</script><!--<script>\u2028\u2029]]>&lt;\ud800\x00"


def test_data_comes_out_as_it_went_in_and_no_text_ends_the_script_it_stands_in() -> None:
    nasty = {"b": NASTY, "a": ["é", 1, None]}
    html = page_html({"a": NASTY, NASTY: 1}, {1: packed(nasty)}, title=NASTY)
    quiet = page_html({"a": 1}, {1: packed({"b": 1})}, title="x")
    for tag in (b"<script", b"</script", b"<!--"):
        assert html.count(tag) == quiet.count(tag)
    assert b"alert(1)&lt;/script" in html.partition(b"<style>")[0], "the title is escaped"
    page, same = page_of(html), NASTY.replace("\ud800", "\ufffd")
    assert page.index["a"] == same
    assert page.details == {1: {"b": same, "a": ["é", 1, None]}}
    assert packed(nasty) == packed(nasty), "the same data gives the same page"


def test_only_the_pages_own_script_may_run_and_nothing_is_loaded() -> None:
    html = page_html({}, {}, title="x").decode()
    script = html.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert not re.search(r"<(script|img|iframe|link)[^>]+(src|href)=\"(?!data:)", html)
    assert "@import" not in html
    assert "<!-- " not in html, "every marker was filled in"


def test_secrets_are_masked_wherever_they_stand(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "hunter2", 2)
    with RunDirectory.open(run) as directory:
        stored = directory.database.rows("SELECT record, grade, id FROM attempts")
    for *texts, number in stored:
        spoilt = (pack(unpack(text).replace(b"confirmed", b"hunter2-secret")) for text in texts)
        change(run, "UPDATE attempts SET record = ?, grade = ? WHERE id = ?", *spoilt, number)

    html = html_report(run, mask=lambda text: text.replace("hunter2", "***KEY***"))

    page = page_of(html)
    assert b"hunter2" not in html
    assert "***KEY***-secret" in page.details[1]["turns"][0]["response"]
    assert "hunter2" not in str(page.details)
    assert html_report(run) == html_report(run)


@pytest.mark.slow
def test_five_hundred_cases_of_five_turns_are_below_ten_megabytes(tmp_path: Path) -> None:
    run = write_large_run(tmp_path / "r", 500, turns=5, tools=5, output=300)

    html = html_report(run)

    assert len(html) < 10_000_000
    assert len(html) > 5_000_000, "no more is left out than has to be"
    page = page_of(html)
    assert len(page.details) == len(page.index["rows"]) == 500
    turn = page.details[500]["turns"][4]
    assert "left out; whole in the raw stream" in turn["items"][2]["result"]["content"]
    assert turn["checks"][0]["evidence"] is None, "it found nothing"
    assert page.details[499]["turns"][4]["checks"][0]["evidence"] is not None


# Pictures that an agent made: in the page where they are small, and only what is a picture.


def test_pictures_of_a_turn_are_in_the_page_and_others_are_named(project: Project) -> None:
    files = {
        "logo.png": png(3, 2),
        "fake.jpg": b"<svg onload=alert(1)>",
        "huge.gif": gif((16000, 16000), (0, 0, 1, 1)),
        "moves.gif": gif((100, 100), *[(0, 0, 9, 9)] * 300),
        "half.png": png(3, 2)[:12],
        "notes.txt": png(3, 2),
    }
    shell = " && ".join(
        f"echo {base64.b64encode(data).decode()} | base64 -d > {name}"
        for name, data in files.items()
    )
    case = f'input: {{prompt: Draw}}\nscripted: [{{steps: [{{run: "{shell}"}}], say: Done.}}]\n'
    project.write({"cases/eval.yaml": "name: draws\n", "cases/draws.yaml": case})
    assert project.run("run", "cases", "--quiet").exit_code in (0, 1)
    run = project.latest_run()

    def images() -> dict[str, dict[str, object]]:
        changes = page_of(html_report(run)).detail("draws")["turns"][0]["changes"]
        return {one["path"]: one for one in changes["images"]}

    found = images()
    assert set(found) == set(files) - {"notes.txt"}
    assert {path for path, one in found.items() if "data" in one} == {"logo.png", "moves.gif"}
    assert base64.b64decode(str(found["logo.png"]["data"])) == files["logo.png"]
    assert (found["logo.png"]["width"], found["logo.png"]["height"]) == (3, 2)
    assert set(found["fake.jpg"]) == {"path", "size"}, "it is no picture"
    assert found["huge.gif"] == {"path": "huge.gif", "size": len(files["huge.gif"])}
    change(run, "DELETE FROM blobs")  # one that is gone costs no conversation
    assert {frozenset(one) for one in images().values()} == {frozenset({"path", "size"})}


@pytest.mark.slow
def test_large_pictures_are_named_and_all_of_a_report_have_a_limit(project: Project) -> None:
    cases = 14
    project.write({"cases/eval.yaml": "name: draws\n", "cases/big.bin": "x"})
    (project.root / "cases/fixture").mkdir()
    (project.root / "cases/fixture/a.bin").write_bytes(png(300, 300, noise=390_000))
    (project.root / "cases/fixture/b.bin").write_bytes(png(300, 300, noise=410_000))
    for n in range(cases):
        (project.root / f"cases/c{n:02}.yaml").write_text(
            "context: {fixture: fixture}\ninput: {prompt: Draw}\n"
            "scripted: [{steps: [{run: cp a.bin a.png; cp b.bin b.png}], say: Done.}]\n"
        )
    assert project.run("run", "cases", "--quiet").exit_code in (0, 1)

    report = html_report(project.latest_run())

    shown = [
        [one["path"] for one in detail["turns"][0]["changes"]["images"] if "data" in one]
        for detail in page_of(report).details.values()
    ]
    assert shown == [["a.png"]] * 10 + [[]] * (cases - 10)
    assert len(report) < 10_000_000


# The types that the page is checked against are those of its data; its advice is that of the docs.


def test_the_types_of_the_page_are_fresh() -> None:
    """If they are not: `python -m tests.reports.page.viewer_types`."""
    assert TYPES.read_text("utf-8") == typescript()


def test_every_kind_has_the_advice_of_its_page() -> None:
    page = next(page for page in PAGES if page.name == "errors.md")
    table = next(t for t in tables_of(page) if t.marker.action == "kinds")
    told = {
        kind.strip("`"): re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", what)
        for kind, _, what in table.rows
    }
    assert told == ADVICE
    assert set(ADVICE) == set(typing.get_args(ErrorKind))


def test_errors_of_records_and_of_grades_look_alike() -> None:
    about = {"kind": "network", "message": "m", "evidence": "e"}
    error = TurnError.model_validate(about)
    expected = {**about, "advice": "check `base_url` and the network"}
    assert error_data(error) == error_data(error.model_dump()) == expected
    assert error_data(None) is None
    unknown = error_data({"kind": "of a later version", "message": "m"})
    assert unknown is not None
    assert unknown["advice"] == ""


# Whatever an agent writes, its conversation can be shown, and the page stays what it is.

PIECES = [
    *("</script>", "<script>alert(1)</script>", "<!--", "-->", "]]>", "<img src=x onerror=x>"),
    *("\x00", "\x1b[31m", "\u202e", "\u2028", "\ud800", "\udfff", "\U0001f600", "e\u0301"),
    *("\u1112\u1161", "\u212b", "\x85"),
    *("…", "⏎", '"', "'", "\\", "found ", "{{x}}", "<<x>>", "\r\n", "\t", "(", ")", ": ", ", "),
    *("javascript:alert(1)", "a" * 300, " " * 70, "\u0301" * 5, "ß", "İ", "ﬁ"),
]  # fmt: skip
TURN = {
    "content": "<<x>>",
    "capture": [{"variable": "y", "pattern": "(?s)(.{1,5})"}],
    "assertions": [
        {"contains": {"any": ["a", "e", " ", "<", "…"]}},
        {"matches": r"(?s)\S.{0,80}"},
        {"not_contains": ["script"]},
        {"tool_called": {"kind": "shell", "args": {"command": {"matches": r"\S+"}}}},
        {"tool_called": {"name": "Bash"}},
        {"json": {"path": "$", "matches": "."}},
    ],
}


@pytest.mark.parametrize("seed", range(30))
def test_any_conversation_can_be_shown(seed: int) -> None:
    lots = random.Random(seed)

    def text() -> str:
        return "".join(lots.choices(PIECES, k=lots.randint(0, 25)))

    turn = make_turn(
        text() or "x",
        content=text(),
        calls=[call("Bash", "shell", command=text(), more=[{text(): text()}]) for _ in range(3)],
        results=[text(), text()],
        captures={"y": text()},
        notes=[text()],
    )
    case = {"id": "c", "vars": {"x": "</script>"}, "input": {"turns": [TURN]}}
    record = make_record(turn, case=case, case_id=text(), variables={"x": text()}).record
    grade = grade_record(record, read_file)

    raw = RawFiles(lambda _: {})
    detail = detail_of(1, text(), record, grade, limits=ORDINARY, raw=raw)

    html = page_html({"rows": [{"reason": text()}]}, {1: packed(detail)}, title=text())
    plain = page_html({"rows": []}, {1: packed({})}, title="x")
    for dangerous in (b"<script", b"</script", b"<!--", b"<img"):
        assert html.count(dangerous) == plain.count(dangerous)
    shown = page_of(html).details[1]
    for check in shown["turns"][0]["checks"]:
        evidence = check["evidence"]
        if evidence is not None and (evidence["part"], evidence["argument"]) != ("arguments", None):
            assert marked(shown, evidence), check["found"]
