"""A trial that is looked at while it is held fills in by itself, without an error on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skillup.store import RunDirectory
from tests.browser.conftest import Opener, served
from tests.browser.pages import Opened
from tests.support.project import Project
from tests.support.stored import a_grade, a_record

CASE = """
    tags: [slow]
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


@pytest.fixture
def go(project: Project) -> Path:
    """The file that lets the run go on, once it is there."""
    return project.root / "go"


@pytest.fixture
def seen(project: Project, open_page: Opener, go: Path) -> Iterator[Opened]:
    """The page of a run whose case `a` is in its second turn, and waits; `b` is not begun."""
    cases = {f"cases/{name}.yaml": CASE % go for name in ("a", "b")}
    project.write({"cases/eval.yaml": "name: slow\n", **cases})
    runs = project.root / ".skillup" / "runs"
    with project.start("run", "cases", "-j", "1", "--quiet") as run:
        while run.poll() is None and not list(runs.glob("2*/trials/a/*/*/*/raw/turn-02*")):
            run.poll()
        for address in served(project, str(runs)):
            with open_page(address) as page:
                with page.arriving():
                    page.page.locator("#rows a").first.click()
                yield page
        go.touch()
        run.wait(timeout=60)


@pytest.fixture
def open_case(seen: Opened) -> Callable[[str], None]:
    """Opens a case of the run."""

    def opens(name: str) -> None:
        with seen.arriving():
            seen.page.locator(f'#rows .case-link:text-is("{name}")').click()

    return opens


def test_a_run_is_told_as_it_goes_on_and_turns_appear_as_they_end(
    seen: Opened, open_case: Callable[[str], None], go: Path
) -> None:
    seen.page.wait_for_selector("#rows .status-RUNNING")
    assert seen.page.inner_text("h1") == "No trial has a verdict; 1 running; 1 waiting."
    assert seen.texts("#rows .status") == ["◌ running", "– waiting"]
    assert "not run" not in seen.page.inner_text("main")
    dots = seen.page.locator("#rows .status-row-RUNNING .dots")
    assert dots.get_attribute("title") == "turn 1 not judged yet"
    assert dots.inner_text() == "·"
    seen.page.select_option("#filter-tag", "slow")
    assert seen.cases() == ["a", "b"], "trials that are not over are found by their tags"
    open_case("b")
    assert "not started yet" in seen.page.inner_text(".verdict")
    with seen.arriving():
        seen.page.keyboard.press("Escape")
    open_case("a")
    assert seen.page.inner_text('.turn[data-turn="1"] .answer') == "Hello, you."
    assert "not judged yet" in seen.page.inner_text('.turn[data-turn="1"]')
    assert "turn 2 is running" in seen.page.inner_text(".live-end")
    seen.page.click('.turn[data-turn="1"] .tool summary')
    seen.page.evaluate("document.body.style.paddingBottom = '2000px'; scrollTo(0, 120)")
    go.touch()
    seen.page.wait_for_selector('.turn[data-turn="2"] .check-PASS')
    assert seen.page.evaluate("scrollY") == 120
    assert seen.page.locator('.turn[data-turn="1"] .tool[open]').count() == 1
    assert seen.page.locator(".live-end").count() == 0
    assert "passed" in seen.page.inner_text(".verdict")


def test_a_conversation_that_is_judged_while_it_is_shown_gets_its_verdict(
    project: Project, open_page: Opener
) -> None:
    job = "a/e/with_skill/1"
    runs = project.root / "runs"
    with RunDirectory.create(runs / "r", {"run_id": "r", "jobs": [job]}) as run:
        run.begin_trial(job)
        run.write_record(job, a_record("a"))
        for address in served(project, str(runs)):
            with open_page(address) as seen:
                seen.go("#/run/r/trial/1")
                assert "not judged yet" in seen.page.inner_text(".turn")
                run.write_grade(job, a_grade("a"))
                seen.page.wait_for_selector(".verdict .status-PASS")
                assert "not judged yet" not in seen.page.inner_text(".turn")
