"""How conversations came out: after second chances, failed gates, retries, and in branches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.conftest import Opener
from tests.browser.pages import Opened, address_of
from tests.support.project import Project

SUITE = {
    "s/eval.yaml": "name: s\nreport: {formats: [html]}",
    "s/chances.yaml": """
        input:
          turns:
            - content: Delete it.
              assertions:
                - contains: are you sure
                  prompt: You have not asked me.
                  assertions:
                    - contains: are you sure
                    - prompt: What does your guide say?
                      assertions: [{contains: ask}]
        scripted:
          - {when: guide, say: That I must ask.}
          - {say: I will.}
    """,
    "s/gated.yaml": """
        context: {files: {a.log: x}}
        input:
          turns:
            - content: Delete the log.
              post_condition: {must_contain: confirm}
              assertions: [{tool_not_called: {kind: shell}}]
            - content: "Yes."
              assertions: [{contains: deleted}]
        assertions: [{files_not_exist: [a.log]}]
        scripted: [{steps: [{run: rm a.log}], say: It is gone.}]
    """,
    "s/branchy.yaml": """
        input:
          turns:
            - content: Delete it.
              branches:
                - {name: refuse, turns: ["No."], assertions: [{contains: kept}]}
                - name: agree
                  turns:
                    - content: "Yes."
                      assertions: [{contains: gone}]
                      branches:
                        - {name: thanks, turns: [Thanks.]}
                        - {name: undo, turns: [Undo.]}
            - content: Which?
              assertions: [{contains: log}]
        scripted:
          - {when: ^yes, say: Gone.}
          - {when: ^no, say: Kept.}
          - {say: a.log}
    """,
    "s/retried.yaml": """
        input: {turns: [Hello, More]}
        assertions: [{contains: hello}]
        retry_policy: {max_retries: 1, retry_on: [crash]}
        scripted: [{turn: 1, say: Hello.}, {say: Hello., misbehave: {exit_code: 1, times: 1}}]
    """,
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a run of all these cases."""
    project = Project(tmp_path_factory.mktemp("run")).write(SUITE)
    outcome = project.run("run", "s", "--out", "r")
    report = project.root / "r/report.html"
    assert report.is_file(), outcome.stderr
    return address_of(report)


@pytest.fixture
def told(open_page: Opener, address: str) -> Iterator[Opened]:
    """It, opened."""
    with open_page(address) as seen:
        yield seen


def test_a_follow_up_stands_by_its_own_checks(told: Opened) -> None:
    told.open_case("chances")
    heads = told.texts(".follow-up > .turn-facts")
    assert [" ".join(head.split("score")[0].split()) for head in heads] == [
        "✗ failed",
        "● passed",
    ]


def test_what_a_failed_gate_kept_from_being_evaluated_found_nothing(told: Opened) -> None:
    told.open_case("gated")
    assert told.texts(".checks h4") == [
        "Checks 1 of 2 failed",
        "Checks not evaluated",
        "Checks of the whole conversation not evaluated",
    ]
    assert "not evaluated" in told.page.inner_text(".conversation-checks .check")
    assert told.page.locator(".show-evidence").count() == 0
    assert told.page.locator(".verdict .status").inner_text() == "✗ failed"
    told.go("#/")
    row = told.page.locator('#rows tr:has(.case-link:text-is("gated"))')
    assert "end" not in row.locator(".dots").inner_text()


def test_branches_stand_beneath_what_they_forked_from(told: Opened) -> None:
    told.open_case("branchy/agree/undo")
    lines = [" ".join(text.split()) for text in told.texts(".family a")]
    assert lines == [
        f"● {name} passed"
        for name in (
            "branchy",
            "branchy/refuse",
            "branchy/agree/thanks",
            "branchy/agree/undo",
        )
    ]
    parents = told.page.locator(".family li li").evaluate_all(
        "(all) => all.map((one) => one.parentElement.closest('li').querySelector('a').textContent)"
    )
    assert parents[0].startswith("● branchy ")
    assert told.texts(".family li li .aside")[0] == "its own from turn 2"


def test_a_retried_trial_says_how_the_earlier_attempt_ended_and_shows_it(told: Opened) -> None:
    told.open_case("retried")
    notice = told.page.inner_text(".attempts")
    assert "This is attempt 2." in notice
    assert "Attempt 1 ended as ! error crash: " in notice
    links = told.page.locator(".facts a").evaluate_all("(all) => all.map((a) => a.href)")
    assert any(link.endswith("/attempt-1.json") for link in links)
    assert any(link.endswith("/raw.attempt-1/turn-02.stdout.jsonl") for link in links)
    assert told.page.locator(".attempt .turn").count() == 0
    told.page.click(".attempts summary")
    assert told.texts(".attempt .turn-head .status") == ["· completed", "! error"]
    assert told.texts(".attempt .error-box h4 code") == ["crash"]
