"""The user, played by an agent in a session of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillup.engines.scripted.engine import ScriptedEngine
from skillup.ratelimit import RateLimiter
from skillup.schema.case import Persona
from skillup.schema.profile import Profile
from skillup.schema.scripted import Script
from skillup.simulator.engine_user import EngineUser, SimulatorConfig
from skillup.trial.request import SimulatorMessage, SimulatorPart
from tests.support.virtual_time import HurriedTime

PERSONA = Persona(objective="renew the card")


def make_user(
    base: Path,
    replies: list[dict[str, Any]],
    rate_limiter: RateLimiter | None = None,
    **profile: Any,
) -> EngineUser:
    """By default a refusal is an error."""
    return EngineUser(
        SimulatorConfig(
            engine=ScriptedEngine(),
            profile=Profile(name="player", engine="scripted", permission="read_only", **profile),
            scratch=base / "user",
            raw_dir=base / "raw",
            environment={"PATH": os.environ["PATH"]},
            timeout_seconds=60,
            rate_limiter=rate_limiter or RateLimiter(0),
            script=Script.model_validate(replies),
        )
    )


def speak(user: EngineUser, *parts: SimulatorPart) -> list[SimulatorMessage]:
    async def all_of_them() -> list[SimulatorMessage]:
        return [await user.speak(part) for part in parts]

    return anyio.run(all_of_them)


def move(**given: str) -> str:
    return json.dumps(given)


def test_each_message_resumes_the_same_session(tmp_path: Path) -> None:
    replies = [
        {"turn": 1, "say": move(message="Renew it, please.")},
        {"turn": 2, "say": '{"message": "{{turn}}, as {{match.1}}"}', "when": "Which (card)"},
    ]
    first = SimulatorPart(persona=PERSONA, messages_left=2)
    second = SimulatorPart(
        persona=PERSONA, said=[("Renew it, please.", "Which card?")], messages_left=1
    )
    said = speak(make_user(tmp_path, replies), first, second)
    assert [message.text for message in said] == ["Renew it, please.", "2, as card"]
    assert {path.name for path in (tmp_path / "raw").iterdir()} >= {
        "user-01.stdout.jsonl",
        "user-02.stdout.jsonl",
    }


def test_it_is_not_permitted_to_run_commands(tmp_path: Path) -> None:
    replies = [{"steps": [{"run": "ls"}], "say": '{"message": "{{output}}"}'}]
    (said,) = speak(make_user(tmp_path, replies), SimulatorPart(persona=PERSONA))
    assert "read_only" in (said.text or "")


def test_an_answer_of_the_wrong_form_is_asked_for_once_more(tmp_path: Path) -> None:
    replies = [
        {"when": "cannot be read", "say": move(message="Hello")},
        {"say": "Hello"},
    ]
    (said,) = speak(make_user(tmp_path, replies), SimulatorPart(persona=PERSONA))
    assert said.text == "Hello"
    assert said.info.usage is not None
    assert said.info.usage.output_tokens == 40, "both answers are counted"


def test_an_answer_that_stays_wrong_is_an_error_of_the_judging(tmp_path: Path) -> None:
    (said,) = speak(make_user(tmp_path, [{"say": "Hello"}]), SimulatorPart(persona=PERSONA))
    assert said.error is not None
    assert said.error.kind == "judge"
    assert "cannot be read" in said.error.message


def test_it_may_stop_only_where_that_is_asked(tmp_path: Path) -> None:
    replies = [{"say": move(stop="completed", reason="Done.")}]
    asked = SimulatorPart(persona=PERSONA, said=[("a", "b")], may_stop=True)
    (stopped,) = speak(make_user(tmp_path / "1", replies), asked)
    assert (stopped.stop, stopped.reason) == ("completed", "Done.")
    (refused,) = speak(make_user(tmp_path / "2", replies), SimulatorPart(persona=PERSONA))
    assert refused.error is not None


def patient(seconds: float = 600) -> RateLimiter:
    return RateLimiter(seconds, **HurriedTime().both)


FIRST = SimulatorPart(persona=PERSONA)
SECOND = SimulatorPart(persona=PERSONA, said=[("Renew it.", "Which card?")])
THIRD = SimulatorPart(persona=PERSONA, said=[*SECOND.said, ("The red one.", "Whose?")])


def conversation(kind: str, at: int, **misbehave: Any) -> list[dict[str, Any]]:
    """Three messages, one of which is refused; each says which of its session it is."""
    replies: list[dict[str, Any]] = [
        {"turn": number, "say": move(message=f"number {number}")} for number in (1, 2, 3)
    ]
    replies[at - 1]["misbehave"] = {"error": kind, **misbehave}
    return replies


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded"])
def test_a_refused_message_is_waited_out_and_sent_in_the_session_as_it_was(
    tmp_path: Path, kind: str, at: int
) -> None:
    replies = conversation(kind, at, times=2)
    said = speak(make_user(tmp_path, replies, patient()), FIRST, SECOND, THIRD)
    assert [message.text for message in said] == ["number 1", "number 2", "number 3"]
    names = {path.name for path in (tmp_path / "raw").glob("*.stdout.jsonl")}
    assert names == {
        *(f"user-0{number}.stdout.jsonl" for number in (1, 2, 3)),
        *(f"user-0{at}.refused-{number}.stdout.jsonl" for number in (1, 2)),
    }


def test_where_its_home_cannot_be_put_back_it_is_told_all_in_another_session(
    tmp_path: Path,
) -> None:
    replies = [
        {"when": "(?s)Renew it.*Which card", "turn": 1, "say": move(message="told all")},
        *conversation("overloaded", 2, times=1),
    ]
    user = make_user(tmp_path, replies, patient(), isolation="shared")
    said = speak(user, FIRST, SECOND)
    assert [message.text for message in said] == ["number 1", "told all"]


@pytest.mark.parametrize(
    ("kind", "patience", "why"),
    [
        ("quota", 600, "the allowance is used up"),
        ("rate_limit", 0, "refusals are not waited out (--rate-limit-wait 0)"),
        ("overloaded", 5, "nothing was accepted in 5 s of waiting"),
    ],
)
def test_what_is_not_waited_out_is_an_error_that_says_why(
    tmp_path: Path, kind: str, patience: float, why: str
) -> None:
    user = make_user(tmp_path, conversation(kind, 2), patient(patience))
    first, second = speak(user, FIRST, SECOND)
    assert first.error is None
    assert second.error is not None
    assert second.error.kind == ("quota" if kind == "quota" else "judge")
    assert f"the simulated user (player): {kind}: " in second.error.message
    assert why in second.error.message
