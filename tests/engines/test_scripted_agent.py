"""The scripted agent by itself: its rules, placeholders, sessions and tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skillup.schema.profile import Script
from tests.support.trees import make_tree

AGENT = Path(__file__).parents[2] / "skillup" / "engines" / "scripted_agent" / "__main__.py"


@dataclass(frozen=True)
class RawRun:
    returncode: int
    events: list[dict[str, Any]]
    stderr: str

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]


class RawAgent:
    """The agent in a directory of its own: `base/home`, `base/workspace`."""

    def __init__(self, base: Path, replies: list[dict[str, Any]], **options: Any) -> None:
        self.home = base / "home"
        self.workspace = base / "workspace"
        self.home.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        self.script = self.home / "script.json"
        script = Script.model_validate({"replies": replies}).model_dump(mode="json")
        self.script.write_text(json.dumps({**script, **options}))

    def run(self, message: str, *args: str, env: Mapping[str, str] | None = None) -> RawRun:
        fixed = [f"--script={self.script}", f"--home={self.home}"]
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(AGENT), *fixed, *args],
            input=message.encode(),
            capture_output=True,
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"], **(env or {})},
            timeout=60,
            check=False,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return RawRun(done.returncode, events, done.stderr.decode())

    def first(self, message: str, **more: Any) -> RawRun:
        return self.run(message, "--session-id=s", **more)

    def resume(self, message: str) -> RawRun:
        return self.run(message, "--resume=s")

    def session_entries(self) -> list[dict[str, Any]]:
        text = (self.home / "sessions" / "s.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


def answer(run: RawRun) -> str:
    (result,) = run.of_type("result")
    assert (result["is_error"], run.returncode) == (False, 0), result
    return str(result["answer"])


def error(run: RawRun) -> dict[str, str]:
    (result,) = run.of_type("result")
    assert (result["is_error"], run.returncode) == (True, 1), result
    found: dict[str, str] = result["error"]
    return found


def results(run: RawRun) -> list[tuple[str, str]]:
    """Status and output of each call; each call has a result of its id."""
    made, given = run.of_type("tool_call"), run.of_type("tool_result")
    assert [call["id"] for call in made] == [one["id"] for one in given]
    return [(one["status"], one["output"]) for one in given]


def test_a_resumed_session_knows_its_earlier_turns_and_its_file_only_grows(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {
                "turn": 1,
                "when": r"call me (?P<name>\w+)",
                "steps": [{"run": "echo hi"}, {"remember": {"code": "{{match.name}}"}}],
                "say": "Hello {{match.name}}.",
            },
            {"turn": 2, "say": "You said: {{turns.1.user}} I said: {{turns.1.answer}}"},
            {"turn": 3, "say": "{{turn}}: {{turns.2.answer}} {{remember.code}}"},
        ],
    )
    assert answer(agent.first("Please CALL me Ann")) == "Hello Ann."
    agent.run("call me Bob", "--session-id=other")
    before = agent.session_entries()
    said = "You said: Please CALL me Ann I said: Hello Ann."
    assert answer(agent.resume("who am I?")) == said
    assert answer(agent.resume("again?")) == f"3: {said} Ann"
    after = agent.session_entries()
    assert after[: len(before)] == before
    kinds = ["session", "user", "remember", "answer"]
    assert [entry["type"] for entry in before] == kinds


def test_sessions_that_are_lost_damaged_or_there_already(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "x"}])
    assert error(agent.resume("hello"))["kind"] == "session_lost"
    assert error(agent.run("hello", "--resume=../s"))["kind"] == "session_lost"
    agent.first("one")
    assert error(agent.first("two"))["kind"] == "session_mismatch"
    assert len([e for e in agent.session_entries() if e["type"] == "user"]) == 1
    (agent.home / "sessions" / "s.jsonl").write_text('{"type": "session"}\n{"type"')
    assert error(agent.resume("two"))["kind"] == "session_lost"


def test_the_first_reply_that_applies_is_taken(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {"turn": 2, "say": "second turn"},
            {"when": "^a+$", "say": "letters {{match.0}}"},
            {"needs_skill": "keeper", "say": "with the skill"},
            {"when": "b", "say": "otherwise"},
        ],
    )
    assert answer(agent.run("AAA", "--session-id=a")) == "letters AAA"
    assert answer(agent.run("b", "--session-id=b")) == "otherwise"
    expected = 'no reply of the script applies to turn 1: "none"'
    assert error(agent.run("none", "--session-id=d")) == {"kind": "script", "message": expected}
    make_tree(agent.workspace, {".agents/skills/keeper/SKILL.md": "# x"})
    assert answer(agent.run("b", "--session-id=c")) == "with the skill"
    assert answer(agent.run("aaa", "--resume=c")) == "second turn"


@pytest.mark.parametrize(
    "placeholder",
    [
        *("{{output}}", "{{match.1}}", "{{match.2}}", "{{match.name}}", "{{turns.1.user}}"),
        *("{{turns.0.answer}}", "{{remember.x}}"),
    ],
)
def test_a_placeholder_without_a_value_is_an_error(tmp_path: Path, placeholder: str) -> None:
    when = {} if placeholder == "{{match.1}}" else {"when": "(h)"}
    found = error(RawAgent(tmp_path, [{**when, "say": placeholder}]).first("hello"))
    assert found["kind"] == "script"
    assert found["message"].startswith(f"{placeholder} has no value: ")


def test_texts_stay_as_they_are(tmp_path: Path) -> None:
    other = "{{ user }} {{name}} {{match}} {{turns.1}} {{#each}} {{{x}}}"
    say = f"{other} [{{{{system}}}}] [{{{{skills}}}}] {{{{user}}}}"
    agent = RawAgent(tmp_path, [{"say": say}], system="Be terse.")
    first = agent.first("{{system}} {{output}}")
    assert answer(first) == f"{other} [Be terse.] [] {{{{system}}}} {{{{output}}}}"
    for message in ("", "/help", "-x", "ü 🙂 \u2028\n\tx\r\n", "x" * 300_000):
        assert answer(agent.resume(message)) == f"{other} [Be terse.] [] {message}"
    steps = [{"run": "printf %s {{user}}"}]
    agent = RawAgent(tmp_path / "c", [{"steps": steps, "say": "{{output}}ß"}])
    assert answer(agent.first("ü", env={"LC_ALL": "C"})) == "üß"


def test_wrong_arguments_and_scripts_and_how_it_starts(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "x"}])
    run = agent.run("x")
    assert (run.returncode, run.events) == (2, [])
    assert "--session-id" in run.stderr
    agent.script.write_text("[]")
    run = agent.first("x")
    assert (run.returncode, run.events) == (2, [])
    assert "is not a script" in run.stderr
    # The guard of its speed: it is started for each turn of each trial.
    root = str(AGENT.parents[3])
    program = (
        f"import sys; sys.path.append({root!r})\n"
        "import skillup.engines.scripted_agent.agent\n"
        "print([name for name in ('pydantic', 'typing', 'subprocess', 'pathlib', 'argparse')"
        " if name in sys.modules])"
    )
    arguments = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout == "[]\n"


PERMITTED = {
    "full": {"shell": "success", "write_file": "success", "read_file": "success"},
    "edits": {"shell": "error", "write_file": "success", "read_file": "success"},
    "read_only": {"shell": "error", "write_file": "error", "read_file": "success"},
}


@pytest.mark.parametrize("permission", PERMITTED)
def test_tools_that_are_not_permitted_are_refused(tmp_path: Path, permission: str) -> None:
    writes = [{"write": {"path": path, "content": "x"}} for path in ("in.txt", "../out.txt")]
    links = [{"write": {"path": path, "content": "x"}} for path in ("/{{user}}/o", "link/o")]
    steps = [{"run": "touch run.txt"}, {"read": "there.txt"}, *writes, *links]
    agent = RawAgent(tmp_path, [{"steps": steps}], permission=permission)
    (agent.workspace / "there.txt").touch()
    (agent.workspace / "link").symlink_to(tmp_path)
    run = agent.first(str(tmp_path).strip("/"))
    names = [call["name"] for call in run.of_type("tool_call")]
    found = results(run)
    for name, (status, output) in zip(names[:3], found[:3], strict=True):
        assert status == PERMITTED[permission][name]
        assert (f"{name} is not permitted" in output) == (status == "error")
    assert (agent.workspace / "run.txt").exists() == (permission == "full")
    assert (agent.workspace / "in.txt").exists() == (permission != "read_only")
    outside = [status == "success" for status, _ in found[3:]]
    assert outside == [permission == "full"] * 3
    assert (tmp_path / "out.txt").exists() == (tmp_path / "o").exists() == (permission == "full")
    if permission == "edits":  # edits stay in the workspace
        assert all("is outside the workspace" in output for _, output in found[3:])
