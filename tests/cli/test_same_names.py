"""Two suites of the same name in one run: nothing of the one counts for the other."""

from __future__ import annotations

from pathlib import Path

from tests.support.project import Project

CASE = "input: {prompt: x}\nassertions: [{contains: fine}]\nscripted: [{say: ANSWER}]\n"
FILES = {
    "s/a/eval.yaml": "name: keeper\ngates: {min_pass_rate: 1}\n",
    "s/a/c.yaml": CASE.replace("ANSWER", "fine"),
    "s/b/eval.yaml": "name: keeper\ngates: {min_pass_rate: 0}\n",
    "s/b/c.yaml": CASE.replace("ANSWER", "bad"),
}


def test_they_stay_apart_in_the_result_in_gates_and_in_trends(tmp_path: Path) -> None:
    project = Project(tmp_path, indexed=True).write(FILES)

    held = project.run("run", "s", "--trials", "2", "--json")

    assert held.exit_code == 1, held.stderr
    assert "s/b/eval.yaml:1:7: warning: name: 2 suites are called keeper" in held.stderr
    assert [(case["suite"], case["rate"]["passed"]) for case in held.data["analysis"]["cases"]] == [
        ("keeper (a)", 2),
        ("keeper (b)", 0),
    ]
    engines = held.data["analysis"]["engines"]
    assert [(column["suite"], column["rate"]["rate"]) for column in engines] == [
        ("keeper (a)", 1),
        ("keeper (b)", 0),
    ]
    trends = project.run("trends", "--json").data["suites"]
    assert [suite["suite"] for suite in trends] == ["keeper (a)", "keeper (b)"]
    first = str(project.latest_run())
    assert project.run("run", "s", "--trials", "2").exit_code == 1
    gates = project.run("compare", first, "last", "--json").data["gates"]
    assert [(gate["suite"], gate["limit"], gate["met"]) for gate in gates] == [
        ("keeper (a)", 1, True),
        ("keeper (b)", 0, True),
    ]


def test_each_is_judged_again_and_resumed_by_its_own_case(tmp_path: Path) -> None:
    project = Project(tmp_path, indexed=True).write(FILES)
    assert project.run("run", "s", "--out", "r", "--max-fail", "1").exit_code == 1

    edited = {"s/b/c.yaml": FILES["s/b/c.yaml"].replace("contains: fine", "contains: bad")}
    judged = project.write(edited).run("judge", "r", "--cases", "s", "--json")

    assert judged.exit_code == 0, judged.stderr
    cases = [(case["grade"]["suite"], case["changes"] is None) for case in judged.data["cases"]]
    assert cases == [("keeper (a)", True), ("keeper (b)", False)]
    refused = project.run("run", "--resume", "r")  # what was held is not mixed with what is edited
    assert refused.exit_code == 2
    assert "keeper (b)" in refused.stderr
    project.write({"s/b/c.yaml": FILES["s/b/c.yaml"]})
    assert project.run("run", "--resume", "r").exit_code == 1
