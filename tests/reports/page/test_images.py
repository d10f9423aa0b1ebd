"""Pictures that an agent made: in the page where they are small, and only what is a picture."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest

from skillup.reports.page.images import kind_of
from skillup.reports.page.report import html_report
from tests.support.pages import page_of
from tests.support.pictures import png
from tests.support.project import Project

JPEG = b"\xff\xd8\xff\xe0\0\4ab\xff\xff\xc2\0\x0b\x08\0\x20\0\x40\1\1\x11\0\xff\xda"
PICTURES = {
    "image/png": png(64, 32),
    "image/gif": b"GIF89a" + struct.pack("<HH", 64, 32) + b"\0\0\0;",
    "image/jpeg": JPEG,
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f"
    + struct.pack("<I", 63 | 31 << 14)
    + b"\0",
}
MORE_WEBP = (
    b"RIFF....WEBPVP8X....\0\0\0\0\x3f\0\0\x1f\0\0",
    b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x40\0\x20\0",
)


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_known_by_its_bytes_with_its_measures(kind: str) -> None:
    assert kind_of(PICTURES[kind]) == (kind, 64, 32)


@pytest.mark.parametrize("data", MORE_WEBP)
def test_each_form_of_webp_has_its_measures(data: bytes) -> None:
    assert kind_of(data) == ("image/webp", 64, 32)


@pytest.mark.parametrize("data", [*PICTURES.values(), *MORE_WEBP])
def test_what_is_cut_short_anywhere_is_no_picture_or_has_measures(data: bytes) -> None:
    found = [kind_of(data[:length]) for length in range(len(data))]
    assert found[:10] == [None] * 10
    assert {one for one in found if one is not None} <= {kind_of(data)}


@pytest.mark.parametrize(
    "data",
    [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"<html>", b"\xff\xd8\xff\xe0\0\0" * 9],
)
def test_documents_and_nonsense_are_none(data: bytes) -> None:
    assert kind_of(data) is None


def written(**files: bytes) -> str:
    """Shell commands that write `files`, whose endings are after the last `_`."""
    lines = [
        f"echo {base64.b64encode(data).decode()} | base64 -d > {name.replace('_', '.')}"
        for name, data in files.items()
    ]
    return " && ".join(lines)


def test_pictures_of_a_turn_are_in_the_page_and_others_are_named(project: Project) -> None:
    files = {
        "logo_png": png(3, 2),
        "fake_jpg": b"<svg onload=alert(1)>",
        "huge_gif": b"GIF89a" + b"\xff\xff" * 2,
        "notes_txt": png(3, 2),
    }
    project.write(
        {
            "cases/eval.yaml": "name: draws\nreport: {formats: [html]}\n",
            "cases/draws.yaml": f"""
                input: {{prompt: Draw}}
                scripted: [{{steps: [{{run: "{written(**files)}"}}], say: Done.}}]
                """,
        }
    )
    assert project.run("run", "cases", "--quiet").exit_code in (0, 1)

    [run] = (project.root / ".skillup" / "runs").glob("2*")
    changes = page_of(run / "report.html").detail("draws")["turns"][0]["changes"]
    images = {one["path"]: one for one in changes["images"]}
    assert set(images) == {"logo.png", "fake.jpg", "huge.gif"}
    assert base64.b64decode(images["logo.png"]["data"]) == files["logo_png"]
    assert (images["logo.png"]["width"], images["logo.png"]["height"]) == (3, 2)
    assert set(images["fake.jpg"]) == {"path", "size"}, "it is no picture"
    assert set(images["huge.gif"]) == {"path", "size"}, "no browser could hold it"


def test_large_pictures_are_named_and_all_of_a_report_have_a_limit(project: Project) -> None:
    cases = 14
    sizes = {"cases/eval.yaml": "name: draws\n", "cases/big.bin": "x"}
    project.write(sizes)
    (project.root / "cases/fixture").mkdir()
    (project.root / "cases/fixture/a.bin").write_bytes(png(300, 300, noise=390_000))
    (project.root / "cases/fixture/b.bin").write_bytes(png(300, 300, noise=410_000))
    for n in range(cases):
        (project.root / f"cases/c{n:02}.yaml").write_text(
            "context: {fixture: fixture}\ninput: {prompt: Draw}\n"
            "scripted: [{steps: [{run: cp a.bin a.png; cp b.bin b.png}], say: Done.}]\n"
        )
    assert project.run("run", "cases", "--quiet").exit_code in (0, 1)

    [run] = (project.root / ".skillup" / "runs").glob("2*")
    report = html_report(run)
    shown = [
        [one["path"] for one in detail["turns"][0]["changes"]["images"] if "data" in one]
        for detail in page_of(report).details.values()
    ]
    assert shown == [["a.png"]] * 10 + [[]] * (cases - 10)
    assert len(report) < 10_000_000


def test_a_blob_that_is_gone_costs_no_conversation(project: Project, tmp_path: Path) -> None:
    project.write(
        {
            "cases/eval.yaml": "name: draws\n",
            "cases/draws.yaml": f"""
                input: {{prompt: Draw}}
                scripted: [{{steps: [{{run: "{written(logo_png=png(3, 2))}"}}], say: Done.}}]
                """,
        }
    )
    project.run("run", "cases", "--quiet")
    [run] = (project.root / ".skillup" / "runs").glob("2*")
    for blob in (run / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    changes = page_of(html_report(run)).detail("draws")["turns"][0]["changes"]
    assert [set(one) for one in changes["images"]] == [{"path", "size"}]
