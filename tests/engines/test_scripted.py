"""The scripted engine: turns in real processes, resumed sessions, faults, histories and forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
import yaml

from skillup.engines.base import EngineTurn, TurnRequest
from skillup.engines.scripted.engine import ScriptedEngine
from skillup.engines.scripted_agent import VERSION
from skillup.process.tree import TRIAL_VARIABLE
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile, Script
from skillup.schema.record import HistoryItem
from tests.support.engine_turns import Conversation, make_trial, raw_streams
from tests.support.trees import make_tree

ROOT = Path(__file__).parents[2]


def scripted(base: Path, replies: Any, trial: Any = None, **profile: Any) -> Conversation:
    """Of a script, in directories of its own; `trial` are fields of the context."""
    fields = {"environment": os.environ, "home": base / "home", "version": "1.0.0", **(trial or {})}
    script = None if replies is None else Script.model_validate({"replies": replies})
    made = make_trial(base, Profile(engine="scripted", **profile), script=script, **fields)
    return Conversation(ScriptedEngine(), made)


def session_path(talk: Conversation) -> Path:
    return talk.trial.home / f"scripted-agent/sessions/{talk.trial.session_id}.jsonl"


def processes(talk: Conversation) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(TRIAL_VARIABLE) == talk.trial.marker:
                found.append(f"{process.pid} {process.name()}")
    return found


def response(outcome: EngineTurn) -> str:
    assert outcome.error is None, outcome.error
    return outcome.response


def test_a_conversation_of_three_turns_is_one_session(tmp_path: Path) -> None:
    usage = {"input_tokens": 1_000_000, "cached_input_tokens": 500_000, "output_tokens": 200_000}
    talk = scripted(
        tmp_path,
        [
            {
                "turn": 1,
                "when": r"ORDER (?P<number>\d+)",
                "steps": [{"remember": {"code": "{{match.number}}"}}],
                "say": "Noted {{match.1}}.",
            },
            {"turn": 2, "say": "{{turns.1.user}} -> {{turns.1.answer}}", "usage": usage},
            {"turn": 3, "say": "{{turns.2.user}}, turn {{turn}}, {{remember.code}}"},
        ],
        model="tiny",
        prices={"tiny": {"input": 2.0, "cached_input": 1.0, "output": 10.0}},
    )
    outcomes = [talk.say(prompt) for prompt in ("order 66", "and?", "so?")]
    first, second, third = outcomes
    assert list(map(response, outcomes)) == [
        "Noted 66.",
        "order 66 -> Noted 66.",
        "and?, turn 3, 66",
    ]
    assert {turn.session for turn in outcomes} == {talk.trial.session_id}
    assert [turn.session_verified for turn in outcomes] == [None, True, True]
    assert [turn.fingerprint.messages for turn in outcomes if turn.fingerprint] == [1, 2, 3]
    assert third.fingerprint
    assert third.fingerprint.prefix_bytes == session_path(talk).stat().st_size
    assert second.usage
    assert second.usage.model_dump(exclude_none=True) == {**usage, "requests": 1}
    assert second.cost_usd == pytest.approx(1.0 + 0.5 + 2.0)
    assert first.usage
    assert (first.usage.input_tokens, first.usage.output_tokens) == (100, 20)
    raw = raw_streams(talk.trial)
    assert '"turn": 1' in raw["turn-01.stdout.jsonl"]
    assert '"turn": 2' in raw["turn-02.stdout.jsonl"]
    assert raw["turn-02.stderr.txt"] == ""
    assert second.process
    assert second.process.argv[-1] == f"--resume={talk.trial.session_id}"
    assert (second.process.exit_code, second.process.ended_by) == (0, "exit")


def test_what_was_done_is_in_the_outcome(tmp_path: Path) -> None:
    steps = [
        {"say": "Let me see."},
        {"write": {"path": "a.txt", "content": "A"}},
        {"read": "a.txt"},
        {"run": "cat a.txt nowhere"},
        {"skill": "keeper"},
    ]
    shown: list[str] = []
    replies = [{"steps": steps, "say": "Done."}]
    talk = scripted(tmp_path, replies, trial={"progress": shown.append})
    outcome = talk.say("go")
    assert response(outcome) == "Done."
    kinds = [item.type for item in outcome.items]
    assert kinds == ["message", *(["tool_call", "tool_result"] * 4), "message"]
    calls = [item.tool_call for item in outcome.items if item.tool_call]
    assert [(call.kind, call.name, call.arguments) for call in calls] == [
        ("write", "write_file", {"path": "a.txt", "content": "A"}),
        ("read", "read_file", {"path": "a.txt"}),
        ("shell", "shell", {"command": "cat a.txt nowhere"}),
        ("skill", "skill", {"skill": "keeper"}),
    ]
    results = [item.tool_result for item in outcome.items if item.tool_result]
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert [result.status for result in results] == ["success", "success", "error", "error"]
    assert "shell cat a.txt nowhere" in shown
    assert (outcome.unknown_events, outcome.version, outcome.cost_usd) == (0, VERSION, None)
    assert (talk.trial.workspace / "a.txt").read_text() == "A"


def test_long_texts_permission_and_step_limit_reach_the_agent(tmp_path: Path) -> None:
    long = "--x \r\n🙂" + "y" * 200_000
    steps = [{"run": "touch x"}]
    talk = scripted(
        tmp_path, [{"steps": steps, "say": "{{system}}|{{user}}"}], permission="read_only"
    )
    for prompt in ("one", long):
        outcome = talk.say(prompt, system=long)
        assert response(outcome) == f"{long}|{prompt}"
        (result,) = [item.tool_result for item in outcome.items if item.tool_result]
        assert (result.status, "not permitted" in result.content) == ("error", True)
    assert not (talk.trial.workspace / "x").exists()
    limited = talk.say("three", max_steps=1)
    assert limited.error
    assert limited.error.kind == "max_turns"


def test_credentials_are_masked_and_what_the_run_spares_is_not(tmp_path: Path) -> None:
    """Else a check would look in vain for a word that records are made of."""
    variables = {**os.environ, "DB_PASSWORD": "walrus"}
    of_run = Secrets({"JUDGE_KEY": "sk-of-the-judge"}).also_of(variables).sparing(["/the-walrus"])
    say = "walrus sk-of-the-judge {{output}}"
    run = {"run": "echo $SOME_API_KEY; echo $SOME_API_KEY >&2"}
    talk = scripted(
        tmp_path,
        [{"steps": [run], "say": say}],
        trial={
            "environment": variables,
            "extra_env": {"SOME_API_KEY": "sk-very-secret"},
            "secrets": of_run,
        },
    )
    outcome = talk.say("go")
    assert response(outcome).startswith("walrus ***JUDGE_KEY*** ***SOME_API_KEY***")
    raw = "".join(raw_streams(talk.trial).values())
    assert "sk-very-secret" not in raw + repr(outcome)


def test_seeds_and_attempts_decide_what_is_left_to_chance(tmp_path: Path) -> None:
    replies: list[dict[str, Any]] = [{"probability": 0.5, "say": "heads"}, {"say": "tails"}]
    trials = [scripted(tmp_path / f"s{seed}", replies, trial={"seed": seed}) for seed in range(6)]
    assert {response(talk.say("toss")) for talk in trials} == {"heads", "tails"}
    often = [{"say": "hi", "misbehave": {"error": "auth", "probability": 0.5}}]
    trials = [scripted(tmp_path / f"f{seed}", often, trial={"seed": seed}) for seed in range(6)]
    errors = [(talk.say("go")).error is not None for talk in trials]
    assert 0 < sum(errors) < 6
    twice = [{"say": "hi", "misbehave": {"error": "overloaded", "times": 2}}]
    trials = [scripted(tmp_path / f"a{n}", twice, trial={"attempt": n}) for n in (1, 2, 3)]
    found = [(talk.say("go")).error for talk in trials]
    assert [error and error.kind for error in found] == ["overloaded", "overloaded", None]


def test_whether_it_is_there_and_another_command(tmp_path: Path) -> None:
    found = anyio.run(ScriptedEngine().check, Profile(engine="scripted"), {})
    assert (found.found, found.version, found.problem) == (True, VERSION, None)
    gone = Profile(engine="scripted", command=[str(tmp_path / "gone")])
    missing = anyio.run(ScriptedEngine().check, gone, {})
    assert not missing.found
    assert missing.problem
    assert missing.problem.kind == "engine_not_found"
    talk = scripted(
        tmp_path / "t",
        [{"say": "{{skills}}"}],
        command=[sys.executable, "-m", "skillup.engines.scripted_agent"],
        trial={"extra_env": {"PYTHONPATH": str(ROOT)}},
    )
    (talk.trial.workspace / ".claude/skills/keeper").mkdir(parents=True)
    (talk.trial.workspace / ".claude/skills/keeper/SKILL.md").touch()
    assert response(talk.say("x")) == "keeper"
    shipped = (ROOT / "engines" / "scripted.yaml").read_text()
    assert Profile.model_validate(yaml.safe_load(shipped)) == Profile(engine="scripted")


HANGS = {
    "steps": [{"run": "(sleep 600 &) ; (setsid sleep 600 &) ; true"}],
    "misbehave": {"hang": True, "ignore_signals": True, "orphan": True},
}
SAYS = {"say": "x"}


@pytest.mark.parametrize(
    ("replies", "profile", "kind", "words"),
    [
        *(
            ([{**SAYS, "misbehave": {"error": kind}}], {}, kind, "scripted: ")
            for kind in ("auth", "model_error")
        ),
        ([{**SAYS, "misbehave": {"exit_code": 7}}], {}, "crash", "exit code 7"),
        ([{**SAYS, "misbehave": {"exit_code": -9}}], {}, "crash", "signal 9"),
        ([{**SAYS, "misbehave": {"no_result": True}}], {}, "protocol", ""),
        ([{**SAYS, "misbehave": {"garbage": True}}], {}, "protocol", ""),
        ([HANGS], {}, "timeout", ""),
        ([{**SAYS, "misbehave": {"new_session": True}}], {}, "session_mismatch", ""),
        ([{**SAYS, "turn": 2}], {}, "model_error", 'turn 1: "go"; correct'),
        (None, {}, "engine_not_usable", "`scripted:` section"),
        ([SAYS], {"command": ["no-such-agent"]}, "engine_not_found", "no-such-agent"),
        ([SAYS], {"args": ["--nonsense"]}, "crash", "--nonsense"),
    ],
)
def test_every_fault_is_an_error_of_its_kind_and_leaves_nothing(
    tmp_path: Path, replies: Any, profile: dict[str, Any], kind: str, words: str
) -> None:
    talk = scripted(tmp_path, replies, **profile)
    waits = kind == "timeout"
    outcome = talk.say("go", **({"timeout_seconds": 0.8} if waits else {}))
    assert outcome.error, outcome
    assert (outcome.error.kind, outcome.response) == (kind, "")
    assert words in outcome.error.message
    if kind == "protocol":
        assert "last lines of stdout" in outcome.error.evidence
    assert processes(talk) == []


def test_an_orphan_and_a_flood_do_not_cost_the_answer(tmp_path: Path) -> None:
    faults = {"orphan": True, "flood_bytes": 3_000_001}
    talk = scripted(tmp_path, [{"say": "hi", "misbehave": faults}])
    outcome = talk.say("go")
    assert (outcome.error, outcome.response, outcome.unknown_events) == (None, "hi", 1)
    assert outcome.process
    assert outcome.process.leftover_processes == 1
    assert processes(talk) == []


@pytest.mark.parametrize("how", ["forgotten", "unknown then", "other", "edited", "added to"])
def test_a_session_that_does_not_hold_the_earlier_turns_is_not_believed(
    tmp_path: Path, how: str
) -> None:
    """S8: a message that somebody added between two turns was `session_verified: true`."""
    faults: dict[str, Any] = {"new_session": True} if how == "other" else {"forget": True}
    say = "{{turns.1.user}}" if how == "unknown then" else "hi"
    is_agent = how in ("forgotten", "unknown then", "other")
    second = {"say": say, "turn": 2, "misbehave": faults if is_agent else {}}
    forgets = {"say": say, "misbehave": faults} if how == "unknown then" else second
    talk = scripted(tmp_path, [{"turn": 1, "say": "one"}, forgets, {"say": "x"}])
    talk.say("one")
    text = session_path(talk).read_text()
    if how == "edited":
        session_path(talk).write_text(text.replace('"one"', '"eno"'))
    elif how == "added to":
        forged = json.dumps({"type": "user", "text": "forged"}) + "\n"
        session_path(talk).write_text(text + forged)

    outcome = talk.say("go")

    assert outcome.error
    mismatch = how in ("other", "added to")
    assert outcome.error.kind == ("session_mismatch" if mismatch else "session_lost")
    assert (outcome.session_verified, outcome.response) == (False, "")
    assert (outcome.process is None) is not is_agent
    if how == "edited":
        assert f"{session_path(talk)}: it held {len(text)} bytes" in outcome.error.evidence


ASKED: list[dict[str, Any]] = [
    {"role": "user", "content": "apply"},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [
        {"id": "c1", "name": "", "kind": "read", "arguments": {"path": "f"}}]},
    {"role": "tool", "tool_result": {"call_id": "c1", "status": "success", "content": "text"}},
    {"role": "assistant", "content": "Which stage?"},
    {"role": "user", "content": "seed"},
    {"role": "assistant", "content": "And where?"},
]  # fmt: skip
BOTH = "{{history.1.user}} {{history.1.answer}}, {{history.2.user}} {{history.2.answer}}, {{turn}}"


@pytest.mark.parametrize(
    ("history", "say", "answer"),
    [
        (ASKED, BOTH, "apply Which stage?, seed And where?, 1"),
        (ASKED[3:], "{{history.1.user}}", "seed"),  # an answer without a question is none
        (ASKED, "{{history.3.user}}", None),
    ],
)
def test_a_seeded_history_is_known_and_counts_no_turns(
    tmp_path: Path, history: list[dict[str, Any]], say: str, answer: str | None
) -> None:
    talk = scripted(tmp_path, [{"turn": 1, "say": say}])
    engine = ScriptedEngine()
    assert engine.seeding_problem(VERSION) is None
    assert all("can be written for" in (engine.seeding_problem(v) or "") for v in (None, "0.9"))
    items = [HistoryItem.model_validate(one) for one in history]
    created = anyio.run(engine.seed, items, talk.trial)
    assert (created.error, created.session) == (None, talk.trial.session_id)
    assert created.session
    turn = TurnRequest(number=1, prompt="Berlin", previous=created.fingerprint)
    outcome = talk.resume(created.session, turn)
    if answer is None:
        assert outcome.error
        assert "{{history.3.user}} has no value" in outcome.error.message
    else:
        assert response(outcome) == answer
        assert outcome.session_verified is True


def test_a_fork_goes_on_from_all_and_leaves_its_parent_alone(tmp_path: Path) -> None:
    replies = [
        {"turn": 1, "say": "in {{output}}", "steps": [{"run": "pwd"}]},
        {"turn": 2, "say": "{{turns.1.answer}}; {{user}}"},
    ]
    parent, child = (scripted(tmp_path / name, replies) for name in ("parent", "child"))
    session, fork = parent.trial.session_id, ScriptedEngine().fork
    for content in (None, b"", b"{", b'{"type": "session", "agent_version": "9"}\n'):
        if content is not None:
            session_path(parent).parent.mkdir(parents=True, exist_ok=True)
            session_path(parent).write_bytes(content)
        none = anyio.run(fork, session, parent.trial, child.trial)
        assert (none.session, none.error and none.error.kind) == (None, "session_lost")
    session_path(parent).unlink()
    first = parent.say("where?")
    before = session_path(parent).read_bytes()
    created = anyio.run(fork, session, parent.trial, child.trial)
    assert created.session == child.trial.session_id
    turn = TurnRequest(number=2, prompt="go on", previous=created.fingerprint)
    outcome = child.resume(created.session, turn)
    assert first.response == f"in {parent.trial.workspace}"
    assert response(outcome) == f"in {child.trial.workspace}; go on"
    assert outcome.session_verified is True
    assert session_path(parent).read_bytes() == before


# The agent's own rules, placeholders, sessions and tools.


def test_sessions_that_are_lost_damaged_or_there_already(tmp_path: Path) -> None:
    talk = scripted(tmp_path, [SAYS])
    turn = TurnRequest(1, "hello", timeout_seconds=60)
    outcomes = [talk.resume("gone", turn), talk.resume("../s", turn)]
    assert response(talk.start(turn)) == "x"
    outcomes.append(talk.start(turn))
    session_path(talk).write_text('{"type": "session"}\n{"type"')
    outcomes.append(talk.resume(talk.trial.session_id, turn))
    kinds = [outcome.error and outcome.error.kind for outcome in outcomes]
    assert kinds == ["session_lost", "session_lost", "session_mismatch", "session_lost"]


def test_the_first_reply_that_applies_is_taken(tmp_path: Path) -> None:
    replies = [
        {"turn": 2, "say": "second turn"},
        {"when": "^a+$", "say": "letters {{match.0}}"},
        {"needs_skill": "keeper", "say": "with the skill"},
        {"when": "b", "say": "otherwise"},
    ]
    plain, skilled = (scripted(tmp_path / name, replies) for name in ("plain", "skilled"))
    make_tree(skilled.trial.workspace, {".agents/skills/keeper/SKILL.md": "# x"})
    assert response(plain.say("b")) == "otherwise"
    assert [response(skilled.say(text)) for text in ("b", "aaa")] == [
        "with the skill",
        "second turn",
    ]
    assert response(scripted(tmp_path / "letters", replies).say("AAA")) == "letters AAA"


@pytest.mark.parametrize(
    "placeholder",
    [
        *("{{output}}", "{{match.1}}", "{{match.2}}", "{{match.name}}", "{{turns.1.user}}"),
        *("{{turns.0.answer}}", "{{remember.x}}"),
    ],
)
def test_a_placeholder_without_a_value_is_an_error(tmp_path: Path, placeholder: str) -> None:
    when = {} if placeholder == "{{match.1}}" else {"when": "(h)"}
    outcome = scripted(tmp_path, [{**when, "say": placeholder}]).say("hello")
    assert outcome.error
    assert f"{placeholder} has no value: " in outcome.error.message


def test_texts_stay_as_they_are(tmp_path: Path) -> None:
    other = "{{ user }} {{name}} {{match}} {{turns.1}} {{#each}} {{{x}}}"
    say = f"{other} [{{{{system}}}}] [{{{{skills}}}}] {{{{user}}}}"
    talk = scripted(tmp_path, [{"say": say}])
    for message in ("{{system}} {{output}}", "", "/help", "-x", "ü 🙂 \u2028\n\tx\r\n"):
        outcome = talk.say(message, system="Be terse.")
        assert response(outcome) == f"{other} [Be terse.] [] {message}"
    steps = [{"run": "printf %s {{user}}"}]
    ascii_only = {"extra_env": {"LC_ALL": "C"}}
    talk = scripted(tmp_path / "c", [{"steps": steps, "say": "{{output}}ß"}], trial=ascii_only)
    assert response(talk.say("ü")) == "üß"


def test_the_agent_imports_little(tmp_path: Path) -> None:
    """The guard of its speed: it is started for each turn of each trial."""
    program = (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "import skillup.engines.scripted_agent.agent\n"
        "print([name for name in ('pydantic', 'typing', 'subprocess', 'pathlib', 'argparse')"
        " if name in sys.modules])"
    )
    arguments = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"


PERMITTED = {
    "full": {"shell": "success", "write_file": "success", "read_file": "success"},
    "edits": {"shell": "error", "write_file": "success", "read_file": "success"},
    "read_only": {"shell": "error", "write_file": "error", "read_file": "success"},
}


@pytest.mark.parametrize("permission", PERMITTED)
def test_tools_that_are_not_permitted_are_refused(tmp_path: Path, permission: str) -> None:
    places = ("in.txt", "../out.txt", "/{{user}}/o", "link/o")
    writes = [{"write": {"path": path, "content": "x"}} for path in places]
    steps = [{"run": "touch run.txt"}, {"read": "there.txt"}, *writes]
    talk = scripted(tmp_path, [{"steps": steps}], permission=permission)
    workspace = talk.trial.workspace
    (workspace / "there.txt").touch()
    (workspace / "link").symlink_to(tmp_path)
    items = talk.say(str(tmp_path).strip("/")).items
    names = [item.tool_call.name for item in items if item.tool_call]
    found = [item.tool_result for item in items if item.tool_result]
    for name, result in zip(names[:3], found[:3], strict=True):
        assert result.status == PERMITTED[permission][name]
        assert (f"{name} is not permitted" in result.content) == (result.status == "error")
    assert (workspace / "run.txt").exists() == (permission == "full")
    assert (workspace / "in.txt").exists() == (permission != "read_only")
    assert [result.status == "success" for result in found[3:]] == [permission == "full"] * 3
    assert (tmp_path / "out.txt").exists() == (tmp_path / "o").exists() == (permission == "full")
    if permission == "edits":  # edits stay in the workspace
        assert all("is outside the workspace" in result.content for result in found[3:])
