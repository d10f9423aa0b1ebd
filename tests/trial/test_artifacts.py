"""`collect_artifacts`: what is kept beside the record."""

from __future__ import annotations

from tests.support.project import Project

CASE = """
    context: {files: {"kept.md": here, "sub/deep.json": "{}", "other.txt": no}}
    collect_artifacts: ["*.md", "**/*.json"]
    input: {prompt: go}
    assertions: [{contains: ok}]
    scripted:
      - steps: [{write: {path: made.md, content: new}}, {run: "ln -s /etc link.md"}]
        say: ok
    """


def test_files_that_the_globs_match_are_copied_with_their_paths_though_the_trial_failed(
    project: Project,
) -> None:
    suite = "name: x\ncases: {defaults: {collect_artifacts: ['*.txt']}}\n"
    project.write({"eval.yaml": suite, "cases/a.yaml": CASE.replace("contains: ok", "contains: x")})
    assert project.run("run", ".").exit_code == 1
    files = project.latest_run() / "trials" / "a" / "scripted" / "with_skill" / "1" / "files"
    found = {p.relative_to(files).as_posix(): p.read_text() for p in files.rglob("*.*")}
    copied = {"kept.md": "here", "made.md": "new", "sub/deep.json": "{}"}
    assert found == {**copied, "other.txt": "no"}


def test_secrets_are_masked_in_contents_and_names(project: Project) -> None:
    case = """
        collect_artifacts: ["**"]
        environment: {}
        input: {prompt: go}
        assertions: [{contains: ok}]
        scripted:
          - steps: [{run: 'mkdir "d-$LAB_KEY" && echo "<$LAB_KEY>" > "d-$LAB_KEY/f-$LAB_KEY"'}]
            say: ok
        """.replace("        environment: {}\n", "")
    suite = "name: x\nenvironment: {env: {LAB_KEY: literal-secret-1}}\n"
    project.write({"eval.yaml": suite, "cases/a.yaml": case})
    assert project.run("run", ".").exit_code == 0
    run = project.latest_run()
    files = run / "trials" / "a" / "scripted" / "with_skill" / "1" / "files"
    assert (files / "d-***LAB_KEY***" / "f-***LAB_KEY***").read_text() == "<***LAB_KEY***>\n"
    assert not [path for path in run.rglob("*") if "literal-secret-1" in path.name]
    written = [path for path in run.rglob("*") if path.is_file()]
    assert not [path for path in written if b"literal-secret-1" in path.read_bytes()]
