"""A conversation as it happened: messages, calls, captures, checks, forks, errors, pictures."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.browser.conftest import Opener
from tests.browser.made import made
from tests.browser.pages import Opened, address_of
from tests.support.pages import Page
from tests.support.pictures import png
from tests.support.project import Project


def test_one_with_everything(seen: Opened, report: str) -> None:
    seen.open_case("tour")
    page = seen.page
    # What was there before turn 1.
    assert "at the desk of a small library" in page.inner_text(".speech.system")
    assert "placed" in page.inner_text(".history h3")
    assert seen.texts(".history .speech .who")[0].startswith("User")
    assert "It is, until six." in page.inner_text(".history .agent")
    # Calls are folded, but for one that should not be, whose piece is marked.
    assert page.locator(".tool[open] mark.evidence-failed").first.inner_text() == "rm"
    call = page.locator('.tool:has-text("tail -n +2")').first
    assert not call.evaluate("(node) => node.open")
    assert "✓" in call.inner_text()
    call.locator("summary").click()
    assert call.locator(".argument").all_inner_texts()[0].split("\n")[0] == "command"
    assert "1" in call.locator(".argument", has_text="result").inner_text()
    changes = page.locator(".changes").first
    changes.locator("summary").first.click()
    assert "+The Valley,Dana Reyes" in changes.locator(".diff-added").all_inner_texts()
    assert changes.locator(".file-modified").count() == 1
    assert "<b>not</b>" in page.locator('.turn[data-turn="3"] .answer').inner_text()
    # Failed checks say at once what was found, and what was expected if their name does not.
    failed = page.locator('.check[open]:has-text("three weeks")').first
    assert "expected" not in failed.inner_text()
    assert "found\nnone of" in failed.inner_text()


def test_a_case_that_failed_opens_at_the_check_that_decided(seen: Opened, report: str) -> None:
    seen.open_case("tour")
    seen.page.wait_for_selector(".check.lit")
    box = seen.page.locator(".check.lit").bounding_box()
    reason = seen.page.inner_text(".verdict-reason")
    name = seen.page.inner_text(".check.lit > summary .check-name")

    assert name in reason
    assert seen.page.locator(".check.lit[open]").count() == 1
    assert box is not None
    assert box["y"] >= 0
    assert box["y"] < seen.page.evaluate("innerHeight")


def test_evidence_and_captures_lead_to_their_places(seen: Opened) -> None:
    seen.open_case("tour")
    page = seen.page
    filled = page.locator(".turn mark.filled").first
    assert filled.inner_text() == "Dana Reyes"
    assert filled.get_attribute("title") == "<<reader>>"
    chip = page.locator(".capture").first
    assert chip.inner_text() == "<<count>> = 1"
    chip.click()
    assert seen.texts("mark.lit") == ["1", "1"]
    assert page.locator('.turn[data-turn="1"] .agent mark.lit').count() == 1
    assert page.locator('.turn[data-turn="2"] .user mark.lit').count() == 1
    page.click('.captures a:text-is("turn 2")')
    assert page.url.split("?")[0].endswith("/turn/2")
    check = page.locator('.check:has-text("written down")').first
    check.locator("summary").click()
    assert seen.texts("mark.lit") == ["written down"]
    assert check.locator(".sign").first.inner_text().startswith("✓")
    # A long text is folded, and evidence in it unfolds it.
    turn = page.locator('.turn[data-turn="3"]')
    folded = turn.locator(".said > .agent > .rendered > .folded")
    assert folded.locator(".unfold").inner_text().startswith("Show all 1\u202f5")
    turn.locator(".check summary").first.click()
    page.wait_for_selector("mark.lit")
    assert folded.count() == 0


def test_every_piece_is_marked_and_a_failed_check_of_a_file_shows_it(seen: Opened) -> None:
    seen.open_case("notes")
    page = seen.page
    assert seen.texts(".answer mark.evidence-passed") == ["dark mode", "login", "login"]
    page.click('.check:has-text("dark mode") summary')
    assert page.locator(".answer mark.lit").count() == 3
    assert page.locator('.turn[data-turn="1"] .changes[open]').count() == 1
    assert "+++ b/news.md" in page.inner_text(".changes[open] .diff")
    check = page.locator('.check[open]:has-text("file_contains")')
    assert "# News\n\n- dark mode\n- login" in check.locator(".excerpt").inner_text()
    check.locator("button").click()
    assert page.locator(".changes.lit").count() == 1
    page.click(".verdict-reason a")
    page.wait_for_selector('.turn[data-turn="1"] .check-FAIL.lit')
    assert page.url.endswith("/turn/1")


def test_follow_ups_simulated_users_branches_and_trials(seen: Opened) -> None:
    page = seen.page
    seen.open_case("ladder")
    follow_up = page.locator(".follow-up")
    assert follow_up.count() == 1
    assert "Are you sure?" in follow_up.inner_text()
    assert follow_up.locator("mark.evidence-passed").inner_text() == "six"
    assert " ".join(page.inner_text(".follow-up > .turn-facts").split()).startswith("● passed")
    assert "first follow-up" in page.inner_text(".turn-head")
    seen.go("#/")
    seen.open_case("renewal")
    assert page.locator(".speech.simulator").count() == 2
    assert "The desk confirmed the renewal." in page.inner_text(".simulated-end")
    seen.go("#/")
    seen.open_case("moody")
    assert page.locator(".trials:not(.compare) a").count() == 12
    assert page.locator(".trials a[aria-current]").count() == 1
    seen.go("#/")
    seen.open_case("remove/agree")
    here = page.locator(".family [aria-current]")
    assert "remove/agree" in here.inner_text()
    assert "shared" in page.locator('.turn[data-turn="1"] .turn-head').inner_text()
    with seen.arriving():
        page.click('.family a:has-text("remove/refuse")')
    assert page.inner_text("h1").startswith("remove/refuse")
    assert "remove/refuse" in here.inner_text()


def test_errors_say_what_to_do_and_gates_that_skip_are_no_failure(seen: Opened) -> None:
    bad = "main .status-FAIL, main .check-FAIL"
    seen.open_case("closed")
    box = seen.page.inner_text(".error-box")
    for said in ("model_error", "What to do", "session_started"):
        assert said in box
    assert "not evaluated" in seen.page.inner_text('.turn[data-turn="3"] .checks h4')
    assert seen.page.locator(bad).count() == 0
    assert seen.page.locator(".raw").count() == 0, "a report stands alone"
    seen.go("#/")
    seen.open_case("gate")
    said = seen.page.inner_text('.turn[data-turn="1"] .checks')
    assert "failed: the rest is skipped" in said
    assert seen.page.locator(bad).count() == 0


def test_a_link_to_a_turn_goes_there_and_one_to_nothing_says_so(seen: Opened, report: str) -> None:
    tour = seen.page.locator("#rows tr", has_text="tour").first.get_attribute("data-n")
    seen.page.goto("about:blank")
    seen.page.goto(f"{report}#/trial/{tour}/turn/3")
    turn = seen.page.locator('.turn[data-turn="3"]:focus')
    turn.wait_for()
    seen.page.wait_for_function(
        "(turn) => turn.getBoundingClientRect().top < innerHeight / 2", arg=turn.element_handle()
    )
    assert seen.page.url.endswith("/turn/3")
    seen.go("#/trial/9999")
    assert "Not found" in seen.page.inner_text("h1")
    with seen.arriving():
        seen.page.keyboard.press("Escape")
    assert seen.cases()


# After second chances, failed gates and retries, and in branches of branches.

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


@pytest.fixture
def address(project: Project) -> str:
    """The report of a run of all these cases."""
    outcome = project.write(SUITE).run("run", "s", "--out", "r")
    report = project.root / "r/report.html"
    assert report.is_file(), outcome.stderr
    return address_of(report)


def test_second_chances_failed_gates_branches_of_branches_and_retries(
    open_page: Opener, address: str
) -> None:
    with open_page(address) as told:
        for looked_at in (_chances, _gated, _branches, _retried):
            looked_at(told)
            told.go("#/")


def _chances(told: Opened) -> None:
    """A follow-up stands by its own checks."""
    told.open_case("chances")
    heads = told.texts(".follow-up > .turn-facts")
    found = [" ".join(head.split("score")[0].split()) for head in heads]
    assert found == ["✗ failed", "● passed"]


def _gated(told: Opened) -> None:
    """What a failed gate kept from being evaluated found nothing."""
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


def _branches(told: Opened) -> None:
    """They stand beneath what they forked from."""
    told.open_case("branchy/agree/undo")
    lines = [text.split()[1] for text in told.texts(".family a")]
    names = ("", "/refuse", "/agree/thanks", "/agree/undo")
    assert lines == [f"branchy{name}" for name in names]
    parents = told.page.locator(".family li li").evaluate_all(
        "(all) => all.map((one) => one.parentElement.closest('li').querySelector('a').textContent)"
    )
    assert parents[0].startswith("● branchy ")
    assert told.texts(".family li li .aside")[0] == "its own from turn 2"


def _retried(told: Opened) -> None:
    """It says how the earlier attempt ended, and shows it."""
    told.open_case("retried")
    notice = told.page.inner_text(".attempts")
    assert "This is attempt 2." in notice
    assert "Attempt 1 ended as ! error crash: " in notice
    assert told.page.locator(".attempt .turn").count() == 0
    told.page.click(".attempts summary")
    assert told.texts(".attempt .turn-head .status") == ["· completed", "! error"]
    assert told.texts(".attempt .error-box h4 code") == ["crash"]


# Pictures that an agent made are shown, small, and nothing else is taken for one.


def drawn(*images: dict[str, Any]) -> Page:
    """A conversation whose turn made these."""
    page, paths = made(1, 1), [one["path"] for one in images]
    page.details[1]["turns"][0]["changes"] = {
        "added": paths, "modified": [], "deleted": [], "diff": "", "images": list(images),
    }  # fmt: skip
    return page


def image(width: int, height: int) -> dict[str, Any]:
    made = png(width, height)
    told = {"path": "logo.png", "size": len(made), "type": "image/png"}
    return {**told, "width": width, "height": height, "data": base64.b64encode(made).decode()}


def unfolded(seen: Opened) -> None:
    seen.go("#/trial/1")
    seen.page.click(".changes > summary")
    seen.page.wait_for_selector(".images")


def test_it_is_drawn_within_bounds_and_named(show: Opener) -> None:
    with show(drawn(image(900, 900)), width=360) as seen:
        unfolded(seen)
        shown = seen.page.locator(".images img")
        shown.evaluate("(node) => node.decode()")
        assert shown.evaluate("(node) => node.naturalWidth") == 900
        assert shown.get_attribute("alt") == "logo.png"
        box = shown.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 360
        assert box["width"] == pytest.approx(box["height"], abs=1)
        caption = seen.page.inner_text("figcaption").replace("\u202f", " ")
        assert caption.startswith("logo.png 900 × 900, ")


def test_nothing_else_is_taken_for_a_picture(show: Opener) -> None:
    others: list[dict[str, Any]] = [
        {"type": "image/svg+xml"},
        {"type": "text/html"},
        {"type": "image/png,<script>"},
        {"data": "http://example.com/track.png"},
        {"data": '" onerror="window.hacked=1'},
        {"data": None, "path": "large.png", "size": 2_000_000, "width": None},
    ]
    images = [{**image(3, 2), **more} for more in others]
    with show(drawn(*images)) as seen:
        unfolded(seen)
        assert seen.page.locator("main img").count() == 0
        said = seen.texts("figcaption")
        assert ["not shown here" in one for one in said] == [True] * len(others)
        assert said[-1].replace("\u202f", " ") == "large.png 2 000 kB, not shown here"
