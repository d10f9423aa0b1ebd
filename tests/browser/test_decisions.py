"""`--until-decided` on the page: what was decided of each case, beside its rate, and of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import large_report
from tests.browser.pages import Opened, address_of
from tests.browser.test_looks import TOO_FAINT, wrong
from tests.support.project import Project

ALWAYS = "input: {prompt: hi}\nassertions: [{contains: fine}]\nscripted: [{say: fine}]\n"


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report: eight trials at most, and surely above 50 % are five passes."""
    project = Project(tmp_path_factory.mktemp("decided"))
    sometimes = ALWAYS.replace("{say: fine}", "{say: fine, probability: 0.5}, {say: bad}")
    project.write(
        {
            "eval.yaml": "name: d\n",
            "always.yaml": ALWAYS,
            "never.yaml": ALWAYS.replace("say: fine", "say: bad"),
            "sometimes.yaml": sometimes,
        }
    )
    options = ("--until-decided", "--trials", "8", "--pass-rate", "0.5", "-j", "1", "--quiet")
    project.run("run", ".", *options, "--report", "html", "--out", "out")
    return address_of(project.root / "out/report.html")


def line_of(seen: Opened, case: str) -> str:
    """The cell of a case that has its rate."""
    cell = seen.page.locator(f'#rows tr:has(.case-link:text-is("{case}")) .column-turns')
    return " ".join(cell.inner_text().replace("\u202f", " ").split())


def test_what_was_decided_of_each_case_and_of_all(open_page: Opener, decided: str) -> None:
    with open_page(decided) as seen:
        page = seen.page
        assert line_of(seen, "always") == (
            "5/5 ● ● ● ● ● surely above 50 % after 5 trials, 3 not needed"
        )
        assert line_of(seen, "never").startswith(
            "0/5 ✗ ✗ ✗ ✗ ✗ surely below 50 % after 5 trials, 3 not needed"
        )
        assert "undecided at 50 % after 8 trials" in line_of(seen, "sometimes")
        assert page.inner_text("#deciding") == (
            "Decided after 5 trials; 6 of 24 trials were not needed; 1 case not decided. "
            "Rates of decided cases lie further from the threshold than the truth, on average."
        )
        assert page.inner_text("h1").endswith("; 6 not needed.")
        # What was not needed is neither failed nor missing.
        assert "not run" not in page.inner_text("main")
        assert seen.texts("#shown") == ["18 trials, 3 cases"]
        assert page.locator(".bar-part.status-NOT_NEEDED").count() == 0
        always = page.locator('#rows tr:has(.case-link:text-is("always"))')
        assert always.locator(".status").inner_text() == "● passed"
        assert always.locator(".column-score").get_attribute("title") == "mean of 5 trials"
        always.locator(".toggle").click()
        assert seen.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(1, 6)]
        always.locator(".toggle").click()
        # Those trials are shown on request.
        page.click('.chip[data-status="NOT_NEEDED"]')
        assert sorted(seen.cases()) == ["always", "never"]
        assert seen.texts("#shown") == ["6 of 24 trials, 2 cases"]
        page.locator(".toggle").first.click()
        assert seen.texts("#rows tr.trial .trial-name") == [f"trial {n}" for n in range(6, 9)]
        with seen.arriving():
            page.click("#rows tr.trial .trial-name >> nth=0")
        said = " ".join(page.inner_text(".verdict").split())
        assert said == "· not needed its case was decided without it"


def test_it_is_legible_and_in_its_place(open_page: Opener, decided: str) -> None:
    with open_page(decided, scheme="dark", width=360) as seen:
        assert seen.page.evaluate(TOO_FAINT) == []
        assert wrong(seen) == []


def test_while_a_run_goes_on_its_lines_say_what_is_decided(
    open_page: Opener, tmp_path: Path
) -> None:
    case = {"suite": "large", "engine": "scripted", "variant": "with_skill", "case_id": "case-1"}
    decision = {"verdict": "below", "threshold": 0.5, "error_rate": 0.05, "trials": 5, "saved": 3}
    more: dict[str, Any] = {"decided": [{**case, "decision": decision}]}
    path = large_report(tmp_path / "report.html", 3, trials=5, **more)
    with open_page(address_of(path)) as page:
        assert "surely below 50 % after 5 trials, 3 not needed" in line_of(page, "case-1")
        assert "surely" not in line_of(page, "case-2")
