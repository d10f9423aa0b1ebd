"""A run as a person sees it: on a terminal, in a log file, with -v."""

from __future__ import annotations

import re

import pytest

from tests.support.project import Project
from tests.support.terminal import on_a_terminal

SUITE = {
    "eval.yaml": "name: s\n",
    "cases/a.yaml": """
        input: {turns: [Hello, Bye]}
        assertions: [{contains: bye}]
        scripted:
          - turn: 1
            steps: [{run: "echo $KEY; sleep 1"}]
            say: "hello \\e[2Jthere"
          - {turn: 2, say: bye}
        """,
}
CURSOR = re.compile(r"\x1b\[\d*[A-HJ]")


@pytest.fixture
def suite(project: Project) -> Project:
    return project.write(SUITE)


def test_on_a_terminal_there_is_a_line_for_the_running_trial(suite: Project) -> None:
    with on_a_terminal("run", ".", cwd=suite.root, env=suite.environment()) as terminal:
        terminal.until("turn 1/2")
        terminal.until("shell echo $KEY; sleep 1")
        terminal.until("1 running")
        code = terminal.ends()

    assert code == 0
    assert CURSOR.search(terminal.shown)
    assert "\x1b[2Jthere" not in terminal.shown
    assert terminal.shown.count("\x1b[?25l") == terminal.shown.count("\x1b[?25h")


def test_verbose_tells_the_conversation_on_stderr_and_nothing_else(suite: Project) -> None:
    outcome = suite.run("run", ".", "-v")

    assert outcome.stdout == ""
    told = outcome.stderr
    order = ["a  turn 1  user\n    Hello", "a  turn 1  agent calls shell\n    echo $KEY; sleep 1",
             "a  turn 1  shell gave", "a  turn 1  agent\n    hello there",
             "a  turn 2  user\n    Bye", "a  turn 2  agent\n    bye",
             "a  checks of the conversation\n    passed   contains", "PASS"]  # fmt: skip
    places = [told.index(text) for text in order]
    assert places == sorted(places)
    assert "\x1b" not in told


def test_a_secret_that_a_tool_coloured_is_nowhere(suite: Project) -> None:
    suite.write({
        "eval.yaml": "name: s\nenvironment: {env: {KEY: '${MY_API_KEY}'}}\n",
        "cases/a.yaml": """
            input: {prompt: Hello}
            assertions: [{contains: bye}]
            scripted:
              - steps: [{run: "echo KEY=$KEY | grep --color=always s3cret | tee found; cat found"}]
                say: bye
            """,
    })  # fmt: skip

    outcome = suite.run(
        "run", ".", "-v", "--out", "r", "--report", "html,junit,markdown",
        env={"MY_API_KEY": "s3cret-value-of-mine"},
    )  # fmt: skip

    assert outcome.exit_code == 0
    assert "KEY=***" in outcome.stderr
    written = [file for file in (suite.root / "r").rglob("*") if file.is_file()]
    assert len(written) > 5
    assert not [f.name for f in written if b"-value-of-mine" in f.read_bytes()]
    assert "-value-of-mine" not in outcome.stderr
