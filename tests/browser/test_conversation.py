"""A conversation as it happened: messages, calls, captures, checks, forks, errors."""

from __future__ import annotations

import pytest

from tests.browser.pages import Opened


def open_case(seen: Opened, case: str) -> None:
    """The first trial of the case, with the skill."""
    row = seen.page.locator(f'#rows tr:has(.case-link:text-is("{case}"))').first
    seen.go(f"#/trial/{row.get_attribute('data-n')}")
    seen.page.wait_for_selector(".conversation")


@pytest.fixture
def tour(seen: Opened) -> Opened:
    """The case with one of everything."""
    open_case(seen, "tour")
    return seen


def test_it_begins_with_what_was_there_before_turn_one(tour: Opened) -> None:
    assert "at the desk of a small library" in tour.page.inner_text(".speech.system")
    assert "placed" in tour.page.inner_text(".history h3")
    assert tour.texts(".history .speech .who")[0].startswith("User")
    assert "It is, until six." in tour.page.inner_text(".history .agent")


def test_calls_are_folded_and_open_to_arguments_and_results(tour: Opened) -> None:
    call = tour.page.locator('.tool:has-text("tail -n +2")').first
    assert not call.evaluate("(node) => node.open")
    assert "succeeded" in call.locator("summary").inner_text().lower() or "✓" in call.inner_text()
    call.locator("summary").click()
    assert call.locator(".argument").all_inner_texts()[0].split("\n")[0] == "command"
    assert "1" in call.locator(".argument", has_text="result").inner_text()


def test_differences_have_signs(tour: Opened) -> None:
    changes = tour.page.locator(".changes").first
    changes.locator("summary").first.click()
    assert "+The Valley,Dana Reyes" in changes.locator(".diff-added").all_inner_texts()
    assert changes.locator(".file-modified").count() == 1


def test_a_deleted_comment_is_no_head_of_a_file(tour: Opened) -> None:
    """F18: below its place in the file, the sign of a line alone says what it is."""
    diff = """\
diff --git a/q.sql b/q.sql
--- a/q.sql
+++ b/q.sql
@@ -1,3 +1,3 @@
 select 1
--- old
+++ new
 from t
--- a/z
+++ b/z
@@ -1 +0,0 @@
-- gone
"""
    script = """(text) => [...SK.el("div", {}, SK.diff(text)).querySelectorAll(".diff > div")].map(
      (part) => [part.className, part.textContent])"""
    assert tour.page.evaluate(script, diff) == [
        ["diff-file", "diff --git a/q.sql b/q.sql\n--- a/q.sql\n+++ b/q.sql"],
        ["diff-place", "@@ -1,3 +1,3 @@"],
        ["diff-same", " select 1"],
        ["diff-removed", "--- old"],
        ["diff-added", "+++ new"],
        ["diff-same", " from t"],
        ["diff-file", "--- a/z\n+++ b/z"],
        ["diff-place", "@@ -1 +0,0 @@"],
        ["diff-removed", "-- gone"],
    ]


def test_a_capture_leads_to_where_it_was_found_and_used(tour: Opened) -> None:
    chip = tour.page.locator(".capture").first
    assert chip.inner_text() == "<<count>> = 1"
    chip.click()
    assert tour.texts("mark.lit") == ["1", "1"]
    assert tour.page.locator('.turn[data-turn="1"] .agent mark.lit').count() == 1
    assert tour.page.locator('.turn[data-turn="2"] .user mark.lit').count() == 1
    tour.page.click('.captures a:text-is("turn 2")')
    assert tour.page.url.split("?")[0].endswith("/turn/2")


def test_filled_in_words_of_a_message_are_marked_with_their_variable(tour: Opened) -> None:
    filled = tour.page.locator(".turn mark.filled").first
    assert filled.inner_text() == "Dana Reyes"
    assert filled.get_attribute("title") == "<<reader>>"


def test_a_check_shows_its_evidence_in_the_text(tour: Opened) -> None:
    check = tour.page.locator('.check:has-text("written down")').first
    check.locator("summary").click()
    tour.page.wait_for_selector("mark.lit")
    assert tour.texts("mark.lit") == ["written down"]
    assert check.locator(".sign").first.inner_text().startswith("✓")


def test_a_call_that_should_not_be_is_unfolded_with_its_piece_marked(tour: Opened) -> None:
    mark = tour.page.locator(".tool[open] mark.evidence-failed").first
    assert mark.inner_text() == "rm", "what the pattern matched, of `rm notes.txt`"


def test_failed_checks_say_at_once_what_was_expected_and_found(tour: Opened) -> None:
    failed = tour.page.locator('.check[open]:has-text("three weeks")').first
    assert "expected" in failed.inner_text()
    assert "found\nnone of" in failed.inner_text()


def test_long_texts_are_folded_and_evidence_in_them_unfolds_them(tour: Opened) -> None:
    turn = tour.page.locator('.turn[data-turn="3"]')
    folded = turn.locator(".said > .agent > .rendered > .folded")
    assert folded.locator(".unfold").inner_text().startswith("Show all 1\u202f5")
    turn.locator(".check summary").first.click()
    tour.page.wait_for_selector("mark.lit")
    assert folded.count() == 0


def test_markup_in_an_answer_is_text(tour: Opened) -> None:
    assert "<b>not</b>" in tour.page.locator('.turn[data-turn="3"] .answer').inner_text()


def test_follow_ups_stand_beneath_the_turn_with_their_own_checks(seen: Opened) -> None:
    open_case(seen, "ladder")
    follow_up = seen.page.locator(".follow-up")
    assert follow_up.count() == 1
    assert "Are you sure?" in follow_up.inner_text()
    assert follow_up.locator("mark.evidence-passed").inner_text() == "six"
    assert "first follow-up" in seen.page.inner_text(".turn-head")


def test_the_simulated_user_is_told_from_the_written_one(seen: Opened) -> None:
    open_case(seen, "renewal")
    assert seen.page.locator(".speech.simulator").count() == 2
    assert "The desk confirmed the renewal." in seen.page.inner_text(".simulated-end")


def test_branches_are_a_tree_with_links_to_the_siblings(seen: Opened) -> None:
    open_case(seen, "remove/agree")
    here = seen.page.locator(".family [aria-current]")
    assert "remove/agree" in here.inner_text()
    assert "shared" in seen.page.locator('.turn[data-turn="1"] .turn-head').inner_text()
    with seen.arriving():
        seen.page.click('.family a:has-text("remove/refuse")')
    assert seen.page.inner_text("h1").startswith("remove/refuse")
    assert "remove/refuse" in here.inner_text()


def test_an_error_says_its_kind_its_evidence_and_what_to_do(seen: Opened) -> None:
    open_case(seen, "closed")
    box = seen.page.inner_text(".error-box")
    assert "model_error" in box
    assert "What to do" in box
    assert "session_started" in box
    assert seen.page.locator('.turn[data-turn="2"] .raw a').count() >= 1


def test_trials_of_a_case_are_side_links(seen: Opened) -> None:
    open_case(seen, "moody")
    seen.page.click(".trials:not(.compare) > .more-trials > summary")
    assert seen.page.locator(".trials:not(.compare) .trial-link").count() == 12
    assert seen.page.locator(".trial-link[aria-current]").count() == 1


def test_every_piece_that_a_check_found_is_marked(seen: Opened) -> None:
    open_case(seen, "notes")
    assert seen.texts(".answer mark.evidence-passed") == ["dark mode", "login", "login"]
    seen.page.click('.check:has-text("dark mode") summary')
    assert seen.page.locator(".answer mark.lit").count() == 3


def test_a_failed_check_of_a_file_shows_what_became_of_it(seen: Opened) -> None:
    open_case(seen, "notes")
    assert seen.page.locator('.turn[data-turn="1"] .changes[open]').count() == 1
    file = seen.page.locator(".wanted-file.evidence-failed")
    assert "+++ b/news.md" in file.inner_text()
    assert "other.txt" not in file.inner_text()
    check = seen.page.locator('.check[open]:has-text("file_contains")')
    assert "# News\n\n- dark mode\n- login" in check.locator(".excerpt").inner_text()
    check.locator("button").click()
    assert seen.page.locator(".wanted-file.lit").count() == 1


def test_the_end_has_a_chip_and_the_reason_leads_to_the_check(seen: Opened) -> None:
    open_case(seen, "notes")
    chips = seen.page.locator(".turn-links a").all_inner_texts()
    assert [chip.split(",")[0].strip() for chip in chips] == ["✗ 1", "● 2", "✗ end"]
    seen.page.click(".verdict-reason a")
    seen.page.wait_for_selector('.turn[data-turn="1"] .check-FAIL.lit')
    assert seen.page.url.endswith("/turn/1")
    seen.page.click(".turn-links a >> nth=2")
    assert seen.page.url.endswith("/turn/end")
    seen.page.wait_for_function("() => document.activeElement.className === 'conversation-checks'")


def test_a_gate_that_skips_the_rest_is_no_failure(seen: Opened) -> None:
    open_case(seen, "gate")
    assert "not met: the rest is skipped" in seen.page.inner_text('.turn[data-turn="1"] .checks')
    assert seen.page.locator("main .status-FAIL, main .check-FAIL").count() == 0


def test_checks_after_an_error_were_not_evaluated_and_the_stream_is_linked(seen: Opened) -> None:
    open_case(seen, "closed")
    assert "not evaluated" in seen.page.inner_text('.turn[data-turn="3"] .checks h4')
    assert seen.page.locator("main .status-FAIL, main .check-FAIL").count() == 0
    assert seen.texts(".error-box .error-raw a")[-1] == "turn-02.stdout.jsonl"


def test_a_path_in_the_workspace_is_headed_by_what_is_its_own(seen: Opened) -> None:
    folder = "/private/tmp/skillup-ws7_dyq8/834966a10765/workspace/"
    for path, shown in ((f"{folder}a/notes.md", "a/notes.md"), ("/tmp/skillup-x/notes.md", None)):
        code = seen.page.evaluate(
            """(path) => { const code = SK.tool({name: 'Write', kind: 'write_file', id: null,
               arguments: {file_path: path}, result: null}).querySelector('.tool-main');
               return [code.textContent, code.title]; }""",
            path,
        )
        assert code == ([shown, path] if shown else [path, ""])


def test_a_link_to_a_turn_goes_there(seen: Opened, report: str) -> None:
    tour = seen.page.locator("#rows tr", has_text="tour").first.get_attribute("data-n")
    seen.page.goto("about:blank")
    seen.page.goto(f"{report}#/trial/{tour}/turn/3")
    turn = seen.page.locator('.turn[data-turn="3"]:focus')
    turn.wait_for()
    seen.page.wait_for_function(
        "(turn) => turn.getBoundingClientRect().top < innerHeight / 2", arg=turn.element_handle()
    )
    assert seen.page.url.endswith("/turn/3")


def test_a_trial_that_is_not_there_is_said(seen: Opened) -> None:
    seen.go("#/trial/9999")
    assert "Not found" in seen.page.inner_text("h1")
    with seen.arriving():
        seen.page.keyboard.press("Escape")
    assert seen.cases()
