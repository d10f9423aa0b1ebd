"""Scripts of a run that was tampered with."""

from __future__ import annotations

from tests.support.project import Project


def test_a_changed_script_never_judges_in_place_of_a_kept_copy_that_is_gone(
    project: Project,
) -> None:
    """S8: who removed the copy had trials judged by a script of their own."""
    case = "input: {prompt: x}\nassertions: [{script: no.sh}]\nscripted: [{say: y}]\n"
    judged = "input: {prompt: x}\njudge: {type: script, script_path: no.sh}\nscripted: [{say: y}]\n"
    project.write({"eval.yaml": "name: s\n", "a.yaml": case, "b.yaml": judged, "no.sh": "exit 1\n"})
    assert project.run("run", ".", "--out", "out").exit_code == 1
    for blob in (project.root / "out/blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    statuses = []
    for content in ("exit 1\n", "exit 0\n"):
        (project.root / "no.sh").write_text(content)
        statuses += [
            c["grade"]["status"] for c in project.run("judge", "out", "--json").data["cases"]
        ]
    assert statuses == ["FAIL", "FAIL", "ERROR", "ERROR"]
    by_the_new_one = project.run("judge", "out", "--cases", ".", "--json")
    assert [c["grade"]["status"] for c in by_the_new_one.data["cases"]] == ["PASS", "PASS"]
