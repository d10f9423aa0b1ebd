"""Pictures that an agent made: in the page where they are small, and only what is a picture."""

from __future__ import annotations

import base64
from pathlib import Path

from skillup.reports.html.build import html_report
from tests.support.pages import page_of
from tests.support.pictures import gif, png
from tests.support.project import Project


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
        "huge_gif": gif((16000, 16000), (0, 0, 1, 1)),
        "moves_gif": gif((100, 100), *[(0, 0, 9, 9)] * 300),
        "half_png": png(3, 2)[:12],
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
    assert set(images) == {name.replace("_", ".") for name in files} - {"notes.txt"}
    assert {path for path, one in images.items() if "data" in one} == {"logo.png", "moves.gif"}
    assert base64.b64decode(images["logo.png"]["data"]) == files["logo_png"]
    assert (images["logo.png"]["width"], images["logo.png"]["height"]) == (3, 2)
    assert set(images["fake.jpg"]) == {"path", "size"}, "it is no picture"
    assert images["huge.gif"] == {"path": "huge.gif", "size": len(files["huge_gif"])}


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
