"""`skillup judge --against` and `--labels`, `skillup label`: judges compared over a real run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import Project

SUITE = """
    name: logs
    judge: {model: "scripted:judges/own.yaml"}
"""
CASE = """
    id: NAME
    pass_threshold: 0.5
    input:
      turns:
        - content: Delete the logs
          assertions:
            - It asks before it deletes
            - rubric:
                criteria:
                  - {id: folder, outcome: It names the folder}
                  - {id: brief, outcome: It is a single sentence}
            - contains: logs
    scripted: [{turn: 1, say: "SAID"}]
"""
OWN = """
    criteria:
      - {when: asks before, found: shall I}
      - {when: the folder, found: data/}
      - {when: single sentence, not_found: '[.?] \\w'}
"""
STRICT = """
    criteria:
      - {when: asks before, found: shall I}
      - {when: the folder, found: /srv/data/}
      - {when: single sentence, not_found: '[.?] \\w'}
"""
ASKS = "asks/scripted/with_skill/1"
HASTY = "hasty/scripted/with_skill/1"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two cases with written-down judges, and a run of them."""
    project = Project(tmp_path_factory.mktemp("finished"))
    said = {"asks": "Shall I delete the logs in data/? They are gone then.", "hasty": "The logs."}
    project.write({"cases/eval.yaml": SUITE, "cases/judges/own.yaml": OWN, "strict.yaml": STRICT})
    for name, text in said.items():
        project.write({f"cases/{name}.yaml": CASE.replace("NAME", name).replace("SAID", text)})
    outcome = project.run("run", "--out", "run")
    assert outcome.exit_code == 0, outcome.stderr
    return project.root


@pytest.fixture
def project(finished: Path, project: Project) -> Project:
    return project.holding(finished)


def judged(project: Project, *options: str, code: int = 0) -> Any:
    outcome = project.run("judge", "run", *options, "--json")
    assert outcome.exit_code == code, outcome.stderr
    return outcome.data


def test_one_model_is_compared_with_the_recorded_grades(project: Project) -> None:
    data = judged(project, "--against", "scripted:strict.yaml")
    [pair] = data["pairs"]
    assert (pair["first"], pair["second"]) == ("recorded", "scripted:strict.yaml")
    # Of six criteria one differs; by rules nothing can.
    assert (pair["items"], pair["agreed"]) == (6, 5)
    # Shares of yes: 3/6 and 2/6; by chance 1/6 + 2/6 agree.
    assert pair["kappa"] == pytest.approx((5 / 6 - 1 / 2) / (1 - 1 / 2))
    [apart] = pair["disagreements"]
    assert (apart["job"], apart["turn"]) == (ASKS, 1)
    assert apart["check"].endswith(" / folder")
    assert (apart["first"]["said"], apart["second"]["said"]) == ("pass", "fail")
    assert "data/" in apart["first"]["quote"]
    assert pair["trials"]["items"] == 2


def test_what_a_judge_failed_on_is_apart_and_makes_it_an_error(project: Project) -> None:
    rules = [{"when": "It asks", "error": "no answer in time"}]
    project.write({"broken.yaml": json.dumps({"rules": rules})})
    options = ("--against", "scripted:broken.yaml", "--against", "scripted:judges/own.yaml")
    data = judged(project, *options, code=3)
    [pair] = data["pairs"]
    assert (pair["items"], pair["agreement"], pair["kappa"]) == (0, None, None)
    assert {error["reason"] for error in data["judges"][0]["errors"]} == {
        "rule 1 of broken.yaml: no answer in time"
    }
    shown = project.run("judge", "run", *options)
    assert "scripted:broken.yaml failed on" in shown.stderr
    assert "no answer in time" in shown.stderr
    unknown = project.run("judge", "run", "--against", "openai:some-model")
    assert (unknown.exit_code, "OPENAI_API_KEY" in unknown.stderr) == (3, True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--against", "a:b", "--judge-model", "a:c"), "not for comparisons"),
        (("--labels", "empty.csv"), "has no label yet"),
        (("--labels", "cases"), "this is not a regular file"),
        (("--labels", "other.csv"), "no label is of anything that was judged"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(
    project: Project, options: tuple[str, ...], told: str
) -> None:
    project.write(
        {"empty.csv": "job,turn,check,label\nasks,0,case,\n", "other.csv": "job,label\nx,pass\n"}
    )
    outcome = project.run("judge", "run", *options)
    assert (outcome.exit_code, told in outcome.stderr) == (2, True), outcome.stderr


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('job,label,check\nasks,pass,\nasks,fail,"case\nhasty,pass,case\n', 3, "unexpected end"),
        ('job,label,check\nasks,pass,"a\nb"\nasks,fail,"x"y"\n', 4, "expected after"),
        ("job,label\nasks,pass,\nasks,fail,because, so\n", 3, "more cells than columns"),
        ("job,label\nasks,maybe\n", 2, "is no label"),
        ("job,label\n,pass\n", 2, "there is no job"),
        ("job,verdict\na,pass\n", 1, "the first line lacks `label`"),
        ("job,label\nasks,pass\nasks,fail\n", 3, "line 2 says the opposite"),
        ("job,turn,label\nasks,x,pass\n", 2, "is no turn"),
        ("job;label\nasks;pass\n", 1, "the separator is `;`"),
        ("job,label,reason\nasks,pass,caf\udce9\n", 2, "save it as UTF-8"),
    ],
)
def test_a_wrong_file_of_labels_is_refused_by_both_and_left_as_it_was(
    project: Project, text: str, line: int, told: str
) -> None:
    path = project.root / "w.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    label = project.run("label", "run", "--no-page", "--csv", "w.csv")
    for outcome in (label, project.run("judge", "run", "--labels", "w.csv")):
        assert (outcome.exit_code, f"w.csv:{line}:" in outcome.stderr) == (2, True), outcome.stderr
        assert told in " ".join(outcome.stderr.split()), outcome.stderr
    assert path.read_bytes() == text.encode(errors="surrogateescape")


def test_labels_are_written_filled_in_and_compared_with(project: Project) -> None:
    written = project.run("label", "run", "--no-page", "--csv", "labels.csv")
    assert (written.exit_code, "6 items, 0 of them labelled" in written.stderr) == (0, True)
    path = project.root / "labels.csv"
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    assert [row["stratum"] for row in rows] == ["fail", "pass"] * 3
    assert {(row["turn"], row["label"], row["message"]) for row in rows} == {
        ("1", "", "Delete the logs")
    }

    # People think as the recorded judge does, but for the folder, which should be the whole path.
    for row in rows:
        asks = row["job"] == ASKS and "asks before" in row["check"]
        brief = row["job"] == HASTY and row["check"].endswith("/ brief")
        row["label"] = "pass" if asks or brief else "fail"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
        writer.writerow({"job": "gone", "turn": "1", "check": "x", "label": "pass"})
        writer.writerow({**rows[0], "label": "pass", "answer": "Said on Monday"})
    data = judged(project, "--labels", "labels.csv", "--against", "scripted:strict.yaml")
    own, strict = (judge["labels"] for judge in data["judges"])
    assert (own["confusion"]["pass"]["pass"], own["confusion"]["pass"]["fail"]) == (2, 1)
    assert (own["confusion"]["fail"]["pass"], own["confusion"]["fail"]["fail"]) == (0, 3)
    assert (own["accuracy"], own["precision"], own["recall"]) == (5 / 6, 2 / 3, 1.0)
    assert own["kappa_interval"][0] < own["kappa"] < own["kappa_interval"][1]
    groups = {name: (one["items"], one["accuracy"]) for name, one in own["groups"].items()}
    assert groups["chosen as: pass"] == (3, 2 / 3)
    assert [one for name, one in groups.items() if name.endswith("/ folder")] == [(2, 0.5)]
    assert strict["accuracy"] == 1.0
    [wrong] = own["wrong"]
    assert (wrong["label"], wrong["said"], wrong["reason"] != "") == ("fail", "pass", True)
    assert [label["job"] for label in own["unmatched"]] == ["gone"]
    assert [label["answer"] for label in own["stale"]] == ["Said on Monday"]

    shown = project.run("judge", "run", "--labels", "labels.csv")
    assert shown.exit_code == 0
    told = [" ".join(line.split()) for line in shown.stderr.splitlines()]
    assert "items accuracy precision recall kappa" in told
    every = "all 6 83 % (44-97 %) 67 % (21-94 %) 100 % (34-100 %) 0.67 (0.10 to 1.00)"
    assert every in told, told
    assert "judge: pass 2 1 0" in told
    assert any("1 label left out: of another answer, in line 9" in line for line in told)
    assert any("1 label left out: nothing that was judged is, in line 8" in line for line in told)
    assert any("not drawn at random" in line for line in told)

    # Again: what is in the file stays, and what is missing is added.
    path.write_text(path.read_text("utf-8").replace("\nhasty", "\nlost").replace("gone,", "kept,"))
    again = project.run("label", "run", "--no-page", "--csv", "labels.csv", "--sample", "4")
    assert "4 items, 1 of them labelled; 8 labels in labels.csv" in again.stderr, again.stderr
    assert {"kept", HASTY} <= {
        row["job"] for row in csv.DictReader(path.read_text("utf-8").splitlines())
    }


def test_edited_cases_are_judged_now_and_measured_by_labels(project: Project) -> None:
    case = project.root / "cases/asks.yaml"
    case.write_text(case.read_text("utf-8").replace("asks before", "asks nothing"), "utf-8")
    own = project.root / "cases/judges/own.yaml"
    own.write_text(own.read_text("utf-8").replace("asks before", "asks (before|nothing)"), "utf-8")
    line = 'asks,1,"rubric ""It asks nothing it deletes""",fail'
    project.write({"l.csv": f"job,turn,check,label\n{line}\n"})
    [judge] = judged(project, "--labels", "l.csv", "--cases", "cases")["judges"]
    assert judge["name"] == "judged now"
    assert judge["labels"]["confusion"]["pass"]["fail"] == 1
