"""The scripted agent's rules, placeholders and sessions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scripted_agent import AGENT, RawAgent, answer, error


def test_a_resumed_session_knows_its_earlier_turns(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {"turn": 1, "when": r"call me (?P<name>\w+)", "say": "Hello {{match.name}}."},
            {"turn": 2, "say": "You said: {{turns.1.user}} I said: {{turns.1.answer}}"},
            {"turn": 3, "say": "{{turn}}: {{turns.2.answer}}"},
        ],
    )
    assert answer(agent.first("Please CALL me Ann")) == "Hello Ann."
    second = "You said: Please CALL me Ann I said: Hello Ann."
    assert answer(agent.resume("who am I?")) == second
    assert answer(agent.resume("again?")) == f"3: {second}"


def test_only_the_turn_s_own_events_are_printed(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"turn": 1, "steps": [{"run": "true"}]}, {"say": "x"}])
    agent.first("one")
    run = agent.resume("two")
    assert [event["type"] for event in run.events] == [
        "session_started",
        "message",
        "usage",
        "result",
    ]


def test_what_was_remembered_belongs_to_the_session(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [{"turn": 1, "steps": [{"remember": {"code": "{{user}}"}}]}, {"say": "{{remember.code}}"}],
    )
    agent.first("x1")
    agent.run("x2", "--session-id", "other")
    assert answer(agent.resume("which?")) == "x1"
    assert answer(agent.run("which?", "--resume", "other")) == "x2"


def test_the_session_file_only_grows(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"run": "echo hi"}], "say": "ok"}])
    agent.first("one")
    before = agent.session_entries()
    agent.resume("two")
    after = agent.session_entries()
    assert after[: len(before)] == before
    assert [entry["type"] for entry in before] == [
        "session",
        "user",
        "tool_call",
        "tool_result",
        "answer",
    ]
    assert [entry["text"] for entry in after if entry["type"] == "user"] == ["one", "two"]


def test_a_session_that_is_not_there_is_lost(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "x"}])
    assert error(agent.resume("hello"))["kind"] == "session_lost"
    assert error(agent.run("hello", "--resume", "../s"))["kind"] == "session_lost"


def test_a_damaged_session_is_lost(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "x"}])
    agent.first("one")
    (agent.home / "sessions" / "s.jsonl").write_text('{"type": "session"}\n{"type"')
    assert error(agent.resume("two"))["kind"] == "session_lost"


def test_a_session_id_is_given_once(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "x"}])
    agent.first("one")
    assert error(agent.first("two"))["kind"] == "session_exists"
    assert len([e for e in agent.session_entries() if e["type"] == "user"]) == 1


def test_the_first_reply_that_applies_is_taken(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [
            {"turn": 2, "say": "second turn"},
            {"when": "^a+$", "say": "letters {{match.0}}"},
            {"needs_skill": "keeper", "say": "with the skill"},
            {"say": "otherwise"},
        ],
    )
    assert answer(agent.run("AAA", "--session-id", "a")) == "letters AAA"
    assert answer(agent.run("b", "--session-id", "b")) == "otherwise"
    agent.install_skill("keeper", "# x")
    assert answer(agent.run("b", "--session-id", "c")) == "with the skill"
    assert answer(agent.run("aaa", "--resume", "c")) == "second turn"


def test_a_message_that_no_reply_is_meant_for_is_an_error(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"turn": 1, "say": "x"}])
    agent.first("one")
    expected = 'no reply of the script applies to turn 2: "two"'
    assert error(agent.resume("two")) == {"kind": "script", "message": expected}


@pytest.mark.parametrize(
    "placeholder",
    [
        "{{output}}",
        "{{match.1}}",
        "{{match.2}}",
        "{{match.name}}",
        "{{turns.1.user}}",
        "{{turns.0.answer}}",
        "{{remember.x}}",
    ],
)
def test_a_placeholder_without_a_value_is_an_error(tmp_path: Path, placeholder: str) -> None:
    rule = (
        {"say": placeholder}
        if placeholder == "{{match.1}}"
        else {"when": "(h)", "say": placeholder}
    )
    found = error(RawAgent(tmp_path, [rule]).first("hello"))
    assert found["kind"] == "script"
    assert found["message"].startswith(f"{placeholder} has no value: ")


def test_the_answer_of_a_turn_that_had_none_has_no_value(tmp_path: Path) -> None:
    agent = RawAgent(
        tmp_path,
        [{"turn": 1, "misbehave": {"no_result": True}}, {"say": "{{turns.1.answer}}"}],
    )
    agent.first("one")
    assert "was not answered" in error(agent.resume("two"))["message"]


def test_other_text_in_double_braces_is_left_alone(tmp_path: Path) -> None:
    text = "{{ user }} {{name}} {{match}} {{turns.1}} {{#each}} {{{x}}}"
    assert answer(RawAgent(tmp_path, [{"say": text}]).first("hello")) == text


def test_what_a_placeholder_brings_in_is_not_filled_again(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "{{user}}"}])
    assert answer(agent.first("{{system}} {{output}}")) == "{{system}} {{output}}"


def test_the_system_prompt_can_be_told(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "[{{system}}] [{{skills}}]"}])
    system = agent.home / "system.txt"
    system.write_text("Be terse.")
    assert answer(agent.first("x", "--system-file", str(system))) == "[Be terse.] []"
    assert answer(agent.resume("x")) == "[] []"


@pytest.mark.parametrize("message", ["", "/help", "-x", "ü 🙂 \u2028\n\tx\r\n", "x" * 300_000])
def test_messages_arrive_as_they_are(tmp_path: Path, message: str) -> None:
    assert answer(RawAgent(tmp_path, [{"say": "{{user}}"}]).first(message)) == message


def test_the_c_locale_does_not_hurt(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"steps": [{"run": "printf %s {{user}}"}], "say": "{{output}}ß"}])
    assert answer(agent.first("ü", env={"LC_ALL": "C"})) == "üß"


def test_lots_are_the_same_for_the_same_seed_and_fall_as_often_as_asked(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"probability": 0.8, "say": "good"}, {"say": "bad"}])

    def told(seed: int, name: str) -> str:
        env = {"SKILLUP_SCRIPTED_SEED": str(seed)}
        return answer(agent.run("x", "--session-id", f"{name}{seed}", env=env))

    first = [told(seed, "a") for seed in range(60)]
    assert 36 <= first.count("good") < 60
    assert [told(seed, "b") for seed in range(10)] == first[:10]


def test_wrong_arguments_and_scripts_are_told_on_stderr(tmp_path: Path) -> None:
    agent = RawAgent(tmp_path, [{"say": "x"}])
    run = agent.run("x")
    assert (run.returncode, run.stdout) == (2, "")
    assert "--session-id" in run.stderr
    agent.script.write_text("[]")
    run = agent.first("x")
    assert (run.returncode, run.stdout) == (2, "")
    assert "is not a script" in run.stderr


def test_starting_the_agent_loads_nothing_heavy() -> None:
    """The guard of its speed: it is started for each turn of each trial."""
    program = (
        "import sys; sys.argv = ['x', '--version']\n"
        "import skillup.engines.scripted_agent.agent\n"
        "print([name for name in ('pydantic', 'typing', 'subprocess', 'pathlib', 'inspect')"
        " if name in sys.modules])"
    )
    root = str(AGENT.parents[3])
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({root!r})\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_it_starts_as_a_module_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "skillup.engines.scripted_agent", "--version"],
        capture_output=True,
        text=True,
        check=True,
        cwd=AGENT.parents[3],
    )
    assert done.stdout.startswith("scripted-agent ")
