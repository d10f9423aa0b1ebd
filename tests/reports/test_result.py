"""What a run prints when it is over, whatever agents and authors put into texts and names."""

from __future__ import annotations

from typing import Any

import pytest

from skillup.reports.result import stop_lines
from skillup.reports.tables import deciding
from skillup.reports.text import plain
from skillup.schema.grade import CaseReliability, Decision, Rate, RunResult, Stop
from tests.support.project import Project
from tests.support.stored import a_result

GONE = "\ufffd"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("a\x1b(B\x1b[m b", "a b"),
        ("\x1b]0;title\x07a", "a"),
        ("\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b7a\x1b8\x1bc", "a"),
        ("\x9b2Ja\x9d0;t\x9c", f"{GONE}2Ja{GONE}0;t{GONE}"),
        ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
        ("50%\r60%", f"50%{GONE}60%"),
        ("a\u202egpj.exe", f"a{GONE}gpj.exe"),
        ("pass\u200bword\ufeff\u2060\xad", f"pass{GONE}word{GONE * 3}"),
        ("a\U000e0041\U000e007f", f"a{GONE * 2}"),
        ("half \ud83d", f"half {GONE}"),
    ],
)
def test_controls_and_what_nobody_would_see_are_taken_out(text: str, shown: str) -> None:
    assert plain(text) == shown
    assert plain(shown) == shown


@pytest.mark.parametrize("text", ["می\u200cخواهم", "👩\u200d🔧", "naïve 漢字", "a\u2028b"])
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize("start", ["\x1b]", "\x1b]0;", "\x1b[", "\x1bP", "\x1b_", "\x9d", "\x90"])
def test_a_command_that_nothing_ends_hides_no_text(start: str) -> None:
    shown = plain(f"{start} rm -rf\nall of this is seen")
    assert "m -rf\n" in shown
    assert shown.endswith("all of this is seen")


CASE = r"""
    id: "case\e[31m[/red]"
    input: {prompt: go}
    assertions: [{equals: "\e]0;title\a[/b]"}]
    scripted: [{say: "\e[2J[/b]"}]
    """
ALIKE = """
    input:
      turns:
        - content: one
          branches:
            - {name: a, turns: [two]}
            - {name: b, turns: [two]}
    assertions: [{contains: x}]
    scripted: [{say: x, misbehave: {error: auth}}]
    """
PASSES = "input: {prompt: go}\nassertions: [{contains: x}]\nscripted: [{say: x}]\n"
FAILS = PASSES.replace("say: x", "say: y")
LONG = "a text that is much longer than what a line of the progress has room for"
LONG_ID = "first-" + "x" * 5000 + "-last"


def test_hostile_long_and_equal_texts_of_one_run(project: Project) -> None:
    """No control reaches the terminal, a long reason stands once, as does what is the same."""
    project.write(
        {
            "eval.yaml": "name: x\n",
            "cases/a.yaml": CASE,
            "cases/b.yaml": FAILS.replace("contains: x", f"contains: {LONG}"),
            "cases/c.yaml": ALIKE,
            "cases/d.yaml": f"id: {LONG_ID}\n{FAILS}",
        }
    )
    outcome = project.run("run", ".", "--out", "to [/b] \x1b[31m")

    assert outcome.exit_code == 3, outcome.stderr
    assert "\x1b" not in outcome.stderr
    assert "case[/red]" in outcome.stderr
    assert "to [/b]" in outcome.stderr
    lines = outcome.stderr.splitlines()
    first, full = (line for line in lines if 'contains "a text' in line)
    assert first.startswith("FAIL   b  ")
    assert first.endswith("…")
    assert full.startswith(f'b: contains "{LONG}"')
    (shared,) = (line for line in lines if line.startswith("c/a, c/b: auth: "))
    assert "it needs no login" in shared
    listing, judged = project.run("list", "."), project.run("judge", "to [/b] \x1b[31m")
    for shown in (outcome.stderr, listing.stdout, judged.stderr):
        assert "x" * 200 not in shown
        assert "first-xxx" in shown
    assert LONG_ID in [case["id"] for case in project.run("list", ".", "--json").data]


def rows_of(stderr: str) -> list[str]:
    """Labels in the closing table."""
    lines = stderr.splitlines()
    heads = [number for number, line in enumerate(lines) if line.split()[:2] == ["case", "turns"]]
    rows = lines[heads[0] + 1 :] if heads else []
    return [" ".join(row.split()[1:3]) for row in rows if row[:4] in ("PASS", "FAIL")]


@pytest.mark.indexed
def test_a_run_whose_reader_goes_away_is_in_the_index(project: Project) -> None:
    project.write({"eval.yaml": "name: x\n", "cases/a.yaml": PASSES, "cases/b.yaml": PASSES})
    ran = project.shell("/bin/sh", "-c", "skillup run . 2>&1 | head -1")
    assert ran.stdout.count("\n") == 1
    assert "1 run" in project.run("trends").stdout


# Trials that did not run.


def a_result_without(*jobs: str, **more: Any) -> RunResult:
    return a_result(finished=False).model_copy(update={"not_run": list(jobs), **more})


def test_it_says_why_what_and_how_to_go_on() -> None:
    stop = Stop(kind="max_tokens", message="the budget of 5 tokens is used up (7)")
    result = a_result_without(
        *(f"a/x/with_skill/{n}" for n in (2, 3)),
        "b/x/with_skill/1",
        stopped=stop,
        not_needed=["c/x/with_skill/9"],
    )
    assert list(stop_lines(result.model_copy(update={"cases": []}), "skillup …")) == [
        "stopped: the budget of 5 tokens is used up (7); 3 of 4 trials were not run",
        "go on with: skillup …",
    ]
    first, _ = stop_lines(a_result_without("a/scripted/with_skill/1"), "…")
    assert first == "1 of 2 trials were not run"
    assert list(stop_lines(a_result(), "skillup …")) == []


COULD_NOT = "1 case not decided"


def decided(side: Any, trials: int, saved: int, not_run: int = 0) -> CaseReliability:
    about = Decision(verdict=side, threshold=0.8, error_rate=0.05, trials=trials, saved=saved)
    return CaseReliability(
        suite="s",
        case_id="c",
        engine="e",
        variant="with_skill",
        not_run=not_run,
        rate=Rate(passed=trials, judged=trials, rate=None, low=None, high=None),
        decision=about,
    )


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (
            [("above", 16, 4), ("below", 3, 17), ("undecided", 20, 0)],
            ["decided after 3 to 16 trials", "21 of 60 trials were not needed", COULD_NOT],
        ),
        ([("below", 3, 2)], ["decided after 3 trials", "2 of 5 trials were not needed"]),
    ],
)
def test_what_sequential_tests_saved(cases: list[tuple[Any, ...]], words: list[str]) -> None:
    line, biased = deciding([decided(*case) for case in cases])
    assert line == "; ".join(words)
    assert biased.startswith("rates of decided cases")
    without = decided("above", 3, 0).model_copy(update={"decision": None})
    assert list(deciding([without])) == []
