"""A browser for the tests of the page, and the reports they look at."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.made import written
from tests.browser.pages import NAME, Opened, address_of, chromium, opened
from tests.support.pages import Page
from tests.support.project import Project
from tests.support.viewing import viewing

SUITE = Path(__file__).parent / "suite"
Opener = Callable[..., AbstractContextManager[Opened]]


class Chromium:
    """The system's, headless; started when it is wanted, and ended when no test wants it next.

    While it runs playwright's event loop does, too, and no test of this process can have its own.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._browser: Browser | None = None

    def started(self, path: str) -> Browser:
        """The one that runs already, or a new one."""
        if self._browser is None:
            playwright = self._stack.enter_context(sync_playwright())
            self._browser = playwright.chromium.launch(executable_path=path)
            self._stack.callback(self._browser.close)
        return self._browser

    def end(self) -> None:
        """Ends it, and playwright's loop."""
        self._browser = None
        self._stack.close()


CHROMIUM = Chromium()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Called for the tests of this folder."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        CHROMIUM.end()


@pytest.fixture
def browser() -> Browser:
    """Chromium; without one the test is skipped, but fails on CI."""
    path = chromium()
    if path is None:
        pytest.skip(f"no Chromium or Chrome was found; install one, or name it in {NAME}")
    return CHROMIUM.started(path)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose suite was held twice, the second time with and without the skill.

    Its `report.html` is of the second run, beside the first. Held once for all workers.
    """
    base = tmp_path_factory.getbasetemp()
    # Without workers the directory above is that of all sessions, with reports of older code.
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "page-of-a-real-run"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = shared / "project"
        if not root.exists():
            project = Project(shared, indexed=True)
            shutil.copytree(SUITE, root / "cases" / "library-desk")
            for more in ([], ["--baseline"]):
                project.run("run", "cases/library-desk", "--quiet", *more)
            first, last = sorted((root / ".skillup" / "runs").glob("2*"))
            told = project.run("report", last.name, "--report", "html", "--against", first.name)
            assert told.exit_code == 0, told.stderr
            shutil.copy(last / "report.html", shared / "report.html")
    return shared


@pytest.fixture(scope="session")
def report(runs: Path) -> str:
    """The address of a report with one of everything."""
    return address_of(runs / "report.html")


@pytest.fixture
def open_page(browser: Browser) -> Opener:
    """Opens a page and watches it, as a context: an address, `width`, `scheme`."""
    return partial(opened, browser)


@pytest.fixture
def show(open_page: Opener, tmp_path: Path) -> Opener:
    """Opens a report with the data that a test has made."""

    def shown(page: Page, title: str = "made", **more: Any) -> AbstractContextManager[Opened]:
        return open_page(written(tmp_path / "report.html", page, title), **more)

    return shown


@pytest.fixture
def seen(open_page: Opener, report: str) -> Iterator[Opened]:
    """The real report, opened."""
    with open_page(report) as page:
        yield page


@pytest.fixture
def viewed(project: Project, runs: Path) -> Iterator[str]:
    """The address of a served folder with two runs."""
    with viewing(project, str(runs / "project" / ".skillup" / "runs")) as viewer:
        yield viewer.url
