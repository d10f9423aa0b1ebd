"""What the skill adds, where cases have unlike numbers of trials: the same in every report."""

from __future__ import annotations

import re

import pytest

from tests.browser.conftest import Opener
from tests.browser.pages import address_of
from tests.support.project import Project

SKILL = """
    ---
    name: keeper
    description: Keeps logs.
    ---
    Ask first.
    """
OFTEN = """
    trials: 4
    input: {prompt: Hi}
    assertions: [{contains: fine}]
    scripted: [{needs_skill: keeper, say: fine}, {say: bad}]
    """
NEVER = """
    input: {prompt: Hi}
    assertions: [{contains: fine}]
    scripted: [{say: bad}]
    """


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """The report's address, what the terminal said, and summary.md."""
    project = Project(tmp_path_factory.mktemp("uplift"))
    cases = {"often": OFTEN, "never": NEVER, "neither": NEVER}
    project.write(
        {
            "SKILL.md": SKILL,
            "evals/eval.yaml": "name: unlike\nskills: [{path: .}]\n",
            **{f"evals/cases/{name}.yaml": text for name, text in cases.items()},
        }
    )
    outcome = project.run("run", ".", "--baseline", "--report", "html,markdown")
    (run,) = (project.root / ".skillup/runs").glob("2*")
    summary = (run / "summary.md").read_text("utf-8")
    return address_of(run / "report.html"), outcome.stderr, summary


def test_rates_beside_the_uplift_are_those_that_it_is_the_difference_of(
    open_page: Opener, told: tuple[str, str, str]
) -> None:
    with open_page(told[0]) as seen:
        shown = [
            text.replace("\u202f", "") for text in seen.texts("#uplift > .scroll tbody tr > *")
        ]
        sentence = seen.page.inner_text("h1").replace("\u202f", " ")
        without = seen.page.inner_text("#baseline").replace("\u202f", " ")
    assert "4 of 6 trials passed with the skill (67 %; mean of 3 cases 33 %, 95 % int" in sentence
    assert without == "Without the skill 0 of 6 passed (0 %; mean of 3 cases 0 %)."
    assert shown[:4] == ["unlike, scripted (mean of 3 cases)", "33%", "0%", "+33 points"]
    said = r"unlike \(mean of 3 cases\) +33% +0% +\+33"
    assert re.search(said, told[1])
    assert re.search(said, re.sub(r"[|\\]", "", told[2]).replace("  ", " "))
    assert "| of trials passed | without the skill |" in told[2]
    assert "| 67% | 0% |" in told[2]
