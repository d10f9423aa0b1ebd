"""A trial that is looked at while it is held fills in by itself, without an error on the way."""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import Opener
from tests.browser.test_view import served
from tests.support.project import Project

CASE = """
    input:
      turns:
        - Hello.
        - {content: "Wait a little.", assertions: [{contains: waited}]}
        - Goodbye.
    scripted:
      - {turn: 1, steps: [{run: ls}], say: "Hello, **you**."}
      - {turn: 2, steps: [{run: "while [ ! -e %s ]; do sleep 0.1; done"}], say: "I waited."}
      - {turn: 3, say: "Bye."}
    """


def under_way(project: Project) -> tuple[Path, Path]:
    """A suite of two cases that wait; the file that lets them go on, and the folder of runs."""
    go = project.root / "go"
    cases = {f"cases/{name}.yaml": CASE % go for name in ("a", "b")}
    project.write({"cases/eval.yaml": "name: slow\n", **cases})
    return go, project.root / ".skillup" / "runs"


def test_turns_appear_as_they_end_and_checks_at_the_end(
    project: Project, open_page: Opener
) -> None:
    go, runs = under_way(project)
    with project.start("run", "cases", "-j", "1", "--quiet") as run:
        while run.poll() is None and not list(runs.glob("2*/trials/a/*/*/*/raw/turn-02*")):
            run.poll()
        for address in served(project, str(runs)):
            with open_page(address) as seen:
                seen.page.locator("#rows a").first.click()
                seen.page.wait_for_selector("#rows .status-RUNNING")
                seen.page.locator('#rows .case-link:text-is("a")').click()
                seen.page.wait_for_selector(".live-end")
                assert seen.page.inner_text('.turn[data-turn="1"] .answer') == "Hello, you."
                assert "not judged yet" in seen.page.inner_text('.turn[data-turn="1"]')
                assert "turn 2 is held" in seen.page.inner_text(".live-end .notice")
                assert "Wait a little." in seen.page.inner_text(".under-way")
                seen.page.click('.turn[data-turn="1"] .tool summary')
                seen.page.evaluate("document.body.style.paddingBottom = '2000px'; scrollTo(0, 120)")
                go.touch()
                seen.page.wait_for_selector('.turn[data-turn="2"] .check-PASS')
                assert seen.page.evaluate("scrollY") == 120
                assert seen.page.locator('.turn[data-turn="1"] .tool[open]').count() == 1
                assert seen.page.locator(".live-end").count() == 0
                assert "passed" in seen.page.inner_text(".verdict")
        run.wait(timeout=60)


def test_a_trial_that_has_not_begun_shows_itself_when_it_is_over(
    project: Project, open_page: Opener
) -> None:
    go, runs = under_way(project)
    with project.start("run", "cases", "-j", "1", "--quiet") as run:
        while run.poll() is None and not list(runs.glob("2*/trials/a/*/*/*/raw/turn-02*")):
            run.poll()
        for address in served(project, str(runs)):
            with open_page(address) as seen:
                seen.page.locator("#rows a").first.click()
                seen.page.locator('#rows .case-link:text-is("b")').click()
                seen.page.wait_for_selector(".verdict:has-text('not started yet')")
                go.touch()
                seen.page.wait_for_selector('.turn[data-turn="2"] .check-PASS')
        run.wait(timeout=60)
