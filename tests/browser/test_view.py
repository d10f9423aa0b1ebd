"""`skillup view` in the browser: the list of runs, two of them together, a run that goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import Opener
from tests.support.project import Project


@pytest.fixture
def viewed(project: Project, runs: Path) -> Iterator[str]:
    """The address of a served folder with two runs."""
    folder = str(runs / "project" / ".skillup" / "runs")
    yield from served(project, folder)


def served(project: Project, *arguments: str) -> Iterator[str]:
    with project.start("view", *arguments, "--no-open", "--port", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = ""
        while "http" not in line:
            line = process.stdout.readline()
            assert line or process.poll() is None, process.stderr.read()
        found = re.search(r"http\S+", line)
        assert found is not None
        yield found[0]


def test_runs_are_listed_opened_and_left(open_page: Opener, viewed: str) -> None:
    with open_page(viewed) as seen:
        assert seen.texts("#shown") == ["2 runs"]
        assert "library-desk" in seen.page.inner_text("#rows")
        seen.page.keyboard.press("j")
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_selector("h1:has-text('trials passed')")
        seen.page.locator("#rows .case-link", has_text="tour").first.click()
        seen.page.wait_for_selector(".conversation")
        seen.page.keyboard.press("Escape")
        seen.page.wait_for_selector("#rows tr")
        seen.settled()
        seen.page.keyboard.press("Escape")
        seen.page.wait_for_selector("h1:text-is('Runs')")


def test_two_runs_are_put_side_by_side(open_page: Opener, viewed: str) -> None:
    with open_page(viewed) as seen:
        seen.page.locator("#rows a").first.click()
        seen.page.wait_for_selector("#against")
        seen.page.select_option("#against", index=1)
        seen.page.wait_for_selector(".sides-table")
        seen.page.click('button[data-change="same"]')
        seen.page.locator(".sides-table .case-link", has_text="tour").first.click()
        seen.page.wait_for_selector('.side-A .turn[data-turn="3"]')
        assert seen.page.locator('.side-B .turn[data-turn="3"]').count() == 1


def test_raw_streams_are_linked(open_page: Opener, viewed: str) -> None:
    with open_page(viewed) as seen:
        seen.page.locator("#rows a").first.click()
        seen.page.locator("#rows .case-link", has_text="tour").first.click()
        link = seen.page.locator(".turn .raw a", has_text="stdout.jsonl").first
        href = link.evaluate("(node) => node.href")
        text = seen.page.evaluate("async (href) => (await fetch(href)).text()", href)
        assert "session_started" in text


def test_a_run_that_goes_on_updates_without_losing_the_filter_or_the_focus(
    project: Project, open_page: Opener
) -> None:
    go = project.root / "go"
    case = """
        input: {prompt: Hello!}
        assertions: [{contains: hello}]
        scripted: [{steps: [{run: "while [ ! -e %s ]; do sleep 0.1; done"}], say: "Hello."}]
        """
    project.write(
        {
            "cases/eval.yaml": "name: slow\n",
            "cases/a.yaml": (case % "/dev/null").replace("while", "true; while"),
            "cases/b.yaml": case % go,
        }
    )
    with project.start("run", "cases", "-j", "1", "--quiet") as run:
        runs = project.root / ".skillup" / "runs"
        while run.poll() is None and not list(runs.glob("2*/trials/*/*/*/*/grading.json")):
            run.poll()
        for address in served(project, str(runs)):
            with open_page(address) as seen:
                seen.page.locator("#rows a").first.click()
                seen.page.wait_for_selector(".live")
                seen.page.fill("#filter-text", "b")
                seen.page.wait_for_selector("#rows .status-RUNNING")
                go.touch()
                seen.page.wait_for_selector("#rows .status-PASS")
                assert seen.cases() == ["b"]
                assert seen.page.input_value("#filter-text") == "b"
                assert seen.page.evaluate("document.activeElement.id") == "filter-text"
                seen.page.wait_for_selector("h1:has-text('2 of 2 trials passed')")
        run.wait(timeout=60)


SEEN = """(hidden) => {
  Object.defineProperty(document, 'hidden', { get: () => hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_tab_that_nobody_sees_lets_go_of_its_connection_and_catches_up(
    open_page: Opener, viewed: str
) -> None:
    with open_page(viewed) as seen:
        seen.page.evaluate(SEEN, True)
        with (
            seen.page.expect_request(lambda request: request.url.endswith("/api/runs")),
            seen.page.expect_request(lambda request: request.url.endswith("/api/events")),
        ):
            seen.page.evaluate(SEEN, False)
