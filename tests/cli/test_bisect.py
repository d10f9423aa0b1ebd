"""`skillup bisect`: its error rate in simulations, and the command on repositories of a skill."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from skillup.app.bisect import next_position, posterior
from tests.docs.blocks import ROOT, blocks_of
from tests.support.project import Project

# The search itself, on answers that are drawn.

COMMITS = 12
ERROR = 0.05
RATES = [(1.0, 0.0), (0.9, 0.1), (0.7, 0.1), (0.95, 0.3), (1.0, 0.5), (0.9, 0.6)]
REPETITIONS = 30


def search(
    culprit: int, rates: tuple[float, float], draw: random.Random, commits: int = COMMITS
) -> tuple[int, int]:
    """The commit that is found (0: none) and the trials that it took."""
    tallies, trials = [(0, 0)] * (commits + 1), 0
    while True:
        known = posterior(tallies)
        if trials >= 2 and known.is_sure(ERROR):
            return known.best, trials
        at = (commits, 0)[trials] if trials < 2 else next_position(known)
        passes = draw.random() < rates[at >= culprit]
        tallies[at] = tallies[at][0] + passes, tallies[at][1] + (not passes)
        trials += 1


def test_the_stated_error_holds_whatever_the_pass_rates_are() -> None:
    draw = random.Random(17)
    wrong: dict[tuple[float, float], int] = {}
    spent: dict[tuple[float, float], float] = {}
    for rates in [*RATES, (1.0, 1.0), (0.8, 0.8)]:
        changed = rates[0] != rates[1]
        culprits = [draw.randint(1, COMMITS) if changed else 0 for _ in range(REPETITIONS)]
        found = [search(culprit, rates, draw) for culprit in culprits]
        wrong[rates] = sum(at != c for (at, _), c in zip(found, culprits, strict=True))
        spent[rates] = sum(trials for _, trials in found) / REPETITIONS

    assert sum(wrong.values()) <= ERROR * REPETITIONS * len(wrong), wrong
    assert max(wrong.values()) <= 2 * ERROR * REPETITIONS, wrong
    assert spent[1.0, 0.0] < 13
    assert spent[1.0, 1.0] < 30
    # A single commit is not blamed because a flaky case failed there.
    blamed = [search(99, (0.5, 0.5), draw, commits=1)[0] for _ in range(40)]
    assert sum(blamed) <= ERROR * 40


# The command, on the history of a skill.

SUITE = """
    name: hello
    skills: [{path: ../skills/greeter}]
    """
CASE = """
    input: {prompt: Hello!}
    assertions: [{contains: good morning}]
    scripted:
      - {needs_skill: crash, misbehave: {error: model_error}}
      - {probability: 0.1, say: "I do not know."}
      - {steps: [{skill: greeter}], say: "{{output}}"}
    """


def git(project: Project, *arguments: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.invalid"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=project.root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def history(
    project: Project, words: Sequence[str | None], descriptions: Sequence[str] = ()
) -> list[str]:
    """A repository with a commit for each of `words`, what the skill says then; their ids."""
    project.write({"cases/eval.yaml": SUITE, "cases/greets.yaml": CASE, "other.txt": "0"})
    git(project, "init", "--quiet", "--initial-branch=main")
    ids = []
    for number, word in enumerate(words):
        skill = project.root / "skills" / "greeter" / "SKILL.md"
        skill.parent.mkdir(parents=True, exist_ok=True)
        about = descriptions[number] if descriptions else "Greets"
        head = (
            f"---\nname: {'crash' if word == 'crash' else 'greeter'}\ndescription: {about}\n---\n"
        )
        skill.write_text(f"{head}Say {word}.\n{number}\n") if word else skill.unlink()
        git(project, "add", "--all")
        git(project, "commit", "--quiet", "-m", f"Revision {number}")
        ids.append(git(project, "rev-parse", "HEAD"))
        git(project, "commit", "--quiet", "--allow-empty", "-m", "Nothing of the skill")
    return ids


def test_the_page_shows_what_is_printed(project: Project) -> None:
    """Its example, with a history as the page says; only the ids of commits differ."""
    page = ROOT / "docs" / "bisect.md"
    suite, case = (block.text for block in blocks_of(page) if block.language == "yaml")
    ids = history(project, ["good morning"] * 8 + ["good evening"] * 5)
    project.write({"cases/eval.yaml": suite, "cases/greets.yaml": case})
    git(project, "tag", "v1", ids[0])
    lines = page.read_text("utf-8").splitlines()
    start = lines.index("    $ skillup bisect greets --good v1 --bad HEAD") + 1
    shown = "\n".join(takewhile(lambda line: line.startswith("    ") or not line, lines[start:]))

    printed = project.run("bisect", "greets", "--good", "v1", "--bad", "HEAD").stdout

    without_ids = [re.sub(r"\b[0-9a-f]{12}\b", "ID", text).split() for text in (shown, printed)]
    assert without_ids[0] == without_ids[1][: len(without_ids[0])], printed
    assert len(without_ids[0]) > 40


def state_of(project: Project) -> Any:
    (file,) = (project.root / ".skillup" / "bisect").glob("*/bisect.json")
    return json.loads(file.read_text())


def test_it_finds_the_commit_that_broke_a_flaky_case_and_touches_nothing_else(
    project: Project,
) -> None:
    ids = history(project, ["good morning"] * 8 + ["good evening"] * 5)
    project.write({"skills/greeter/SKILL.md": "edited", "staged.txt": "1"})
    git(project, "add", "staged.txt")
    before = git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")
    search = ("bisect", "greets", "--good", ids[0], "--bad", "HEAD")

    first = project.run(*search, "--trials-budget", "3")
    assert first.exit_code == 1, first.stderr
    assert "best answer so far" in first.stdout
    assert project.run(*search, "--trials-budget", "2").stdout == first.stdout
    assert len(state_of(project)["trials"]) == 3
    outcome = project.run(*search)

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout.startswith(f"{ids[8][:12]} broke greets (")
    assert "Revision 8" in outcome.stdout
    assert "+Say good evening." in outcome.stdout
    assert "12 commits after good, up to bad; 3 trials in " in outcome.stderr
    trials = state_of(project)["trials"]
    assert f"sure after {len(trials)} trials" in outcome.stdout
    assert {trial["at"] for trial in trials} <= set(ids)
    assert (git(project, "status", "--porcelain"), git(project, "rev-parse", "HEAD")) == before
    assert not (project.root / ".skillup" / "runs").exists()
    look = outcome.stderr.split("skillup show ")[1].strip()
    assert "FAIL" in project.run("show", look).stdout
    again = project.run(*search)
    assert (again.stdout, len(state_of(project)["trials"])) == (outcome.stdout, len(trials))
    # Of all files beside the cases the trials may depend, but not on the skill as it is here.
    for file, kept in (("skills/greeter/SKILL.md", len(trials)), ("cases/fixtures/a.txt", 0)):
        project.write({file: "other"})
        assert f"; {kept} trials in " in project.run(*search, "--trials-budget", "1").stderr


def test_commits_without_a_verdict_are_stepped_over(project: Project) -> None:
    """One has no skill, so that one trial tells; with the other the agent fails every time."""
    words = ["good morning", "good morning", None, "crash", "good evening", "good evening"]
    ids = history(project, words)

    outcome = project.run("bisect", "cases/greets.yaml", "--good", ids[0], "--bad", ids[5])

    assert outcome.exit_code == 0, outcome.stderr
    named = " or ".join(ids[n][:12] for n in (2, 3, 4))
    assert outcome.stdout.startswith(f"{named} broke greets (")
    errors = [trial["at"] for trial in state_of(project)["trials"] if trial["status"] == "ERROR"]
    assert sorted(errors) == sorted([ids[2], *[ids[3]] * 3])


def test_where_nothing_changed_it_says_so(project: Project) -> None:
    ids = history(project, ["good morning"] * 3)
    project.write({"cases/greets.yaml": CASE.replace("probability: 0.1", "turn: 2")})
    outcome = project.run("bisect", "greets", "--good", ids[0], "--bad", ids[2])
    assert outcome.exit_code == 1
    assert outcome.stdout.startswith("no difference between good and bad (")


def test_ctrl_c_loses_no_judged_trial(project: Project) -> None:
    ids = history(project, ["good morning", "good morning", "good evening"])
    project.write({"cases/greets.yaml": CASE.replace("steps: [", "steps: [{delay: 0.3}, ")})
    search = ("bisect", "greets", "--good", ids[0], "--bad", ids[2])

    with project.start(*search) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate()

    assert (process.returncode, "interrupted" in rest) == (130, True), (lines, rest)
    kept = state_of(project)["trials"]
    assert len(kept) >= 2
    assert project.run(*search).exit_code == 0
    assert state_of(project)["trials"][: len(kept)] == kept


def test_a_trial_without_a_verdict_is_no_verdict(project: Project) -> None:
    ids = history(project, ["good morning", "good evening"])
    project.write({"cases/greets.yaml": CASE.split("scripted:")[0] + FAULT})

    outcome = project.run("bisect", "greets", "--good", ids[0], "--bad", ids[1])

    assert outcome.exit_code == 3
    assert f"no verdict at {ids[1][:12]}: " in outcome.stderr
    assert state_of(project)["trials"] == []


FAULT = "scripted: [{say: x, misbehave: {error: model_error}}]\n"
CLI = ("--cli", "claude_code", "--good")
REFUSED = {
    "no such commit": (["greets", "--good", "v9", "--bad", "HEAD"], 2),
    "is no ancestor of": (["greets", "--good", "HEAD", "--bad", "HEAD~2"], 2),
    "no commit between": (["greets", "--good", "HEAD~1", "--bad", "HEAD"], 2),
    "no case matches": (["other", "--good", "HEAD~2", "--bad", "HEAD"], 2),
    "about one case": (["*", "--good", "HEAD~2", "--bad", "HEAD"], 2),
    "scripted has no versions": (["greets", "--cli", "scripted", "--good", "1", "--bad", "2"], 2),
    "npm has no version 9.0.0 of": (["greets", *CLI, "2.1.190", "--bad", "9.0.0"], 2),
    "is not later than": (["greets", *CLI, "2.1.191", "--bad", "2.1.190"], 2),
    "npm install @anthropic": (["greets", *CLI, "2.1.190", "--bad", "2.1.191"], 3),
}  # fmt: skip
NPM = """\
#!/bin/sh
[ "$1" = view ] && echo '["2.1.190", "2.1.191"]' && exit
echo "npm error code ENOTFOUND" >&2; exit 1
"""


def fake_npm(project: Project, text: str) -> dict[str, str]:
    """The environment in which `npm` is that script."""
    path = project.root.parent / "npm" / "npm"
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:{project.environment()['PATH']}"}


def test_what_cannot_be_searched_is_refused(project: Project) -> None:
    history(project, ["good morning", "good evening"])
    project.write({"cases/second.yaml": CASE})
    npm = fake_npm(project, NPM)

    for message, (arguments, code) in REFUSED.items():
        outcome = project.run("bisect", *arguments, env=npm)
        assert (outcome.exit_code, message in outcome.stderr) == (code, True), outcome.stderr
    assert "ENOTFOUND" in outcome.stderr
    assert not [*Path(project.root, ".skillup", "clis").glob("claude-code-2*[0-9]")]
