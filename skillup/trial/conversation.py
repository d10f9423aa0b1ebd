"""A conversation, turn by turn: fill in, send, gate, follow up, capture."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import anyio.to_thread

from skillup.checks import CheckContext, evaluate_set
from skillup.checks.capture import capture
from skillup.checks.evaluate import (
    evaluate_checks,
    evaluate_turn,
    follow_ups,
    passes,
    reaches,
    unmet,
    weighted_mean,
)
from skillup.engines.base import TurnRequest
from skillup.schema import templates
from skillup.schema.case import Turn
from skillup.schema.checks import Check
from skillup.schema.grade import CheckResult, Judging
from skillup.schema.record import Record, SimulatedEnd, SimulatorInfo, TurnError, TurnRecord, joined
from skillup.schema.suite import lead_of
from skillup.trial.message import LiveSession, not_sent, system_of
from skillup.trial.message_retry import Sender
from skillup.trial.request import Deadline, TrialEvent, TrialRequest, spent_in
from skillup.trial.simulated_user import SimulatedUser, unwritten
from skillup.trial.state_backup import StateBackup, note_down

# Follow-ups: messages that are sent within a turn because a check of its answer failed.

Look = Callable[[Sequence[Check], TurnRecord], Awaitable[Sequence[CheckResult]]]
"""Evaluates a level of checks (:func:`skillup.checks.evaluate.evaluate_checks`) on an answer."""
Send = Callable[[Check, list[int]], Awaitable[TurnRecord]]
"""Sends the check's `prompt` in the turn's session; also told its place."""


async def run_follow_ups(
    checks: Sequence[Check],
    answer: TurnRecord,
    look: Look,
    send: Send,
) -> TurnRecord:
    """`answer` with the follow-ups that its failing checks ask for, held one after the other.

    The first whose own checks pass ends it; so does an error, which becomes the turn's.
    """
    if not any(check.prompt is not None for check in checks):
        return answer  # nothing hangs on what the checks say
    results = await look(checks, answer)
    undecided = _undecided(results)
    if undecided is not None:
        return answer.model_copy(update=undecided)
    held: list[TurnRecord] = []
    for place, check in follow_ups(checks, results):
        followed = await send(check, [*answer.asked_by, place])
        if followed.status == "completed":
            nested = check.assertions or []
            followed = await run_follow_ups(nested, followed, look, send)
        held.append(followed)
        if followed.error is not None:
            update = {"status": "error", "reason": followed.reason, "error": followed.error}
            return answer.model_copy(update={**update, "follow_ups": held})
        passed = await _passes(check.assertions or [], followed, look)
        if isinstance(passed, dict):
            return answer.model_copy(update={**passed, "follow_ups": held})
        if passed:
            break
    return answer.model_copy(update={"follow_ups": held}) if held else answer


def _undecided(results: Sequence[CheckResult]) -> dict[str, Any] | None:
    """Where a check could not be evaluated, nobody knows whether to follow up: an error.

    To go on as if it had passed, or failed, would make a verdict of a judge's trouble.
    """
    broken = next((result for result in results if result.error is not None), None)
    if broken is None:
        return None
    text = f"the check `{broken.name}`, on which a follow-up hangs, could not be evaluated"
    error = TurnError(kind=broken.error_kind or "judge", message=f"{text}: {broken.error}")
    return {"status": "error", "reason": error.message, "error": error}


async def _passes(checks: Sequence[Check], answer: TurnRecord, look: Look) -> bool | dict[str, Any]:
    """Whether the answer's checks pass, or those of one of its follow-ups.

    Or what :func:`_undecided` says.
    """
    results = await look(checks, answer)
    undecided = _undecided(results)
    if undecided is not None:
        return undecided
    if passes(results):
        return True
    last = answer.follow_ups[-1] if answer.follow_ups else None
    if last is None:
        return False
    asking = checks[last.asked_by[-1]]
    return await _passes(asking.assertions or [], last, look)


# Whether a turn just held meets its own assertions, for `on_turn_failure: stop`.


def turn_failure(
    held: TurnRecord, turn: Turn, context: CheckContext, threshold: float | None
) -> str | TurnError | None:
    """Why the turn's assertions are not met; None if they are (or there are none).

    A TurnError if that cannot be told, since one of them could not be evaluated.

    `context` is the conversation's so far. Without a `threshold` every check must pass.
    """
    outcome = evaluate_turn(turn.checks(), held, context)
    asked = [*outcome.results, *(r for one in outcome.follow_ups for r in one.results)]
    broken = next((result for result in asked if result.error is not None), None)
    if broken is not None:
        text = f"the check `{broken.name}` could not be evaluated (on_turn_failure: stop)"
        return TurnError(kind=broken.error_kind or "judge", message=f"{text}: {broken.error}")
    failed = unmet(outcome.deciding)
    required = any(result.required for result in failed)
    if not failed or (
        threshold is not None
        and not required
        and reaches(weighted_mean(outcome.deciding), threshold)
    ):
        return None
    return f"turn {held.turn_number} failed: {failed[0].name}"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it is sent."""

    text: str
    simulator: SimulatorInfo | None = None
    """How the simulated user came to it; None: the case has it."""
    notes: tuple[str, ...] = ()


class LiveConversation:
    """One case's conversation; :meth:`hold` holds it."""

    def __init__(
        self,
        request: TrialRequest,
        live: LiveSession,
        variables: dict[str, str],
        record: Record,
        held: Sequence[TurnRecord] = (),
        *,
        held_seconds: float = 0.0,
        began: float | None = None,
        judging: Judging | None = None,
    ) -> None:
        """`record` is the trial's so far, without turns: what checks see beside the turn.

        `held` are turns that were held already, by the parent of a fork or by another process; none
        of them ended the conversation. They took `held_seconds` of the conversation's time, and
        `judging` of judges. `began` is when the trial did (monotonic clock), less what came before.
        """
        self.request = request
        self.case = request.job.loaded.case
        self.live = live
        self.variables = variables
        self.record = record
        self._system = system_of(self.case.input, record.initial_variables)
        self.turns: list[TurnRecord] = list(held)
        self.simulated_end: SimulatedEnd | None = None
        self._stop: str | None = None
        now = time.monotonic()
        self._began, self._opened = now if began is None else began, now - held_seconds
        self._earlier_judging = judging
        self._deadline = Deadline.after(self.case.timeout_seconds, used=held_seconds)
        self._keeper = StateBackup(live)
        self._sender = Sender(request.throttle, live, self._deadline, self._keeper)
        self.user = SimulatedUser(request, record, self._deadline)
        # With skill-up's scenario, `max_turns` counts the user's messages, if nothing else does.
        led = self.case.user_simulator is not None and lead_of(self.case) is not None
        counts_messages = led and self.case.turn_limit is None
        self._max_steps = None if counts_messages else self.case.max_turns

    @property
    def ended(self) -> bool:
        """Something has ended it: what would come next is not sent."""
        return self._stop is not None

    async def hold(self, turns: Sequence[Turn], *, until: int | None = None) -> list[TurnRecord]:
        """What is left of `turns`, all of the case's, up to turn `until` (default: the last).

        Where something ends the conversation, the turns after it are `skipped`.
        """
        for number, turn in enumerate(turns[:until], start=1):
            if number <= len(self.turns):
                continue
            if self._stop is not None:
                self.turns.append(not_sent(number, turn.content or turn.respond or "", self._stop))
                continue
            await self.run_next(turn, of=len(turns))
            if number < len(turns) and not self.ended:
                await self._note_down()
        return self.turns

    async def run_next(self, turn: Turn, *, of: int, message: Message | None = None) -> None:
        """The next turn, one `of` so many at most; nothing may have ended the conversation.

        `message` is what is sent; default: what `turn` says, or has the simulated user write.
        """
        number = len(self.turns) + 1
        written = message or await self._written(turn, number)
        about = "" if isinstance(written, TurnRecord) or written.simulator is None else written.text
        self._notify("turn_started", number, of, about)
        held = (
            written
            if isinstance(written, TurnRecord)
            else await self._hold_turn(turn, written, number)
        )
        self.turns.append(held)
        took, cost = spent_in(held)
        self._notify("turn_ended", number, of, held.status, tokens=took, cost_usd=cost)
        self._stop = _why_stop(held) or await self._stop_for_assertions(held, turn)

    @property
    def waited(self) -> float:
        """So many seconds it waited for its provider; they are no time of the trial's."""
        return self._deadline.postponed

    def judging(self) -> Judging | None:
        """What judges have taken so far, in all parts of the conversation."""
        judge = self.request.judge
        return joined(self._earlier_judging, judge.judging() if judge else None)

    async def _note_down(self) -> None:
        """What another process needs to go on from here."""
        now = time.monotonic()
        await note_down(
            self.request,
            self._keeper,
            self.live,
            self._so_far().model_copy(update={"judging": self.judging()}),
            self.variables,
            round(max(0.0, now - self._began - self.waited) * 1000),
            max(0.0, now - self._opened - self.waited),
        )

    async def _written(self, turn: Turn, number: int) -> Message | TurnRecord:
        """The turn's message; or the turn, which ended before there was one."""
        if turn.respond is None:
            return self._filled_in(turn.content or "", number, literal=turn.literal)
        asked = templates.escape(turn.respond) if turn.literal else turn.respond
        said = await self.user.write(number, self.turns, self.variables, instruction=asked)
        if said.error is not None or said.text is None:
            return unwritten(number, said, turn.respond)
        return Message(said.text, said.info, said.notes)

    def _filled_in(self, content: str, number: int, *, literal: bool) -> Message | TurnRecord:
        """`content` with its templates filled in; if a name has no value, an error."""
        try:
            return Message(content if literal else templates.render(content, self.variables))
        except templates.UnresolvedNameError as missing:
            text = f"turn {number}: {missing}; the agent was not called"
            error = TurnError(kind="template", message=text)
            return not_sent(number, content, text, error=error)

    async def _hold_turn(self, turn: Turn, message: Message, number: int) -> TurnRecord:
        held = await self._say(turn, message, number, f"turn-{number:02d}")
        if held.status != "completed":
            return held
        held = await self._gate(held, turn)
        if held.status != "completed" or held.post_condition_passed is False:
            return held
        # Its checks and follow-ups may use what it captures; a miss may be mended by follow-ups.
        captured = await self._capture(held, turn)
        said = [held if captured.error is not None else captured]

        async def send(check: Check, asked_by: list[int]) -> TurnRecord:
            stem = f"turn-{number:02d}-follow-up-{len(said)}"
            filled_in = self._filled_in(check.prompt or "", number, literal=check.literal)
            if isinstance(filled_in, TurnRecord):
                followed = filled_in
            else:
                followed = await self._say(turn, filled_in, number, stem)
            followed = followed.model_copy(update={"source": "follow_up", "asked_by": asked_by})
            said.append(followed)
            return followed

        async def look(checks: Sequence[Check], answer: TurnRecord) -> list[CheckResult]:
            so_far = said[0].model_copy(update={"follow_ups": said[1:]})
            return await self._settle(
                answer, lambda context: evaluate_checks(checks, context), within=so_far
            )

        held = await run_follow_ups(turn.checks(), said[0], look, send)
        if held.status != "completed" or (held.captures and not held.follow_ups):
            return held
        return await self._capture(held, turn)

    async def _say(self, turn: Turn, message: Message, number: int, stem: str) -> TurnRecord:
        """Send one message, if there is time left for it; again, where the provider refused it."""
        sent = await self._sender.send(
            stem, lambda sending: self._say_once(turn, message, number, stem, sending)
        )
        return _by(message, sent.model_copy(update={"turn_number": number}))

    async def _say_once(
        self, turn: Turn, message: Message, number: int, stem: str, sending: int
    ) -> TurnRecord:
        profile = self.request.job.profile
        own = turn.timeout_seconds or profile.timeout_seconds
        limit = self._deadline.limit(own)
        # What is left of it differs from trial to trial, and would set the same errors apart.
        all_of_it = f"the conversation's {self.case.timeout_seconds or own:g} s"
        if limit <= 0:
            text = f"turn {number}: {all_of_it} are used up"
            error = TurnError(kind="timeout", message=f"{text}; raise `timeout_seconds`")
            return not_sent(number, message.text, text, error=error)
        writer = "case" if message.simulator is None else "simulator"
        source = "follow_up" if "follow-up" in stem else writer
        source = source if sending == 1 else "again"
        self._notify("message_sent", number, 0, message.text, source=source)
        return await self.live.send(
            TurnRequest(
                number=self.live.messages + 1,
                prompt=message.text,
                stem=stem,
                slash_command=turn.slash_command,
                system=self._system,
                timeout_seconds=limit,
                limit=all_of_it if limit < own else "",
                max_steps=self._max_steps or profile.max_turns,
                previous=self.live.fingerprint,
                sending=sending,
            )
        )

    async def _gate(self, held: TurnRecord, turn: Turn) -> TurnRecord:
        """Ask the post-condition, if there is one."""
        gate = turn.post_condition
        if gate is None:
            return held
        results = await self._settle(
            held, lambda context: evaluate_set(gate, context, role="post_condition")
        )
        update: dict[str, Any] = {"post_condition": results}
        broken = next((result for result in results if result.error), None)
        unmet = next((result for result in results if not result.passed), None)
        if broken is not None:
            text = f"the post-condition `{broken.name}` could not be evaluated: {broken.error}"
            error = TurnError(kind=broken.error_kind or "judge", message=text)
            update |= {"status": "error", "reason": text, "error": error}
        else:
            update["post_condition_passed"] = unmet is None
        if broken is None and unmet is not None:
            update["reason"] = f"post-condition not met: {unmet.name}: {unmet.found}"
            if gate.on_fail == "fail":
                update["status"] = "failed"
            else:
                update["reason"] += f" (on_fail: {gate.on_fail})"
        return held.model_copy(update=update)

    async def _capture(self, held: TurnRecord, turn: Turn) -> TurnRecord:
        """Take the captures out of the answer that stands, else those of the first answer stand.

        A miss in both makes the turn an error.
        """
        if not turn.capture:
            return held
        answer = held.last_answer()
        found = await anyio.to_thread.run_sync(
            capture, turn.capture, answer, abandon_on_cancel=True
        )
        if found.miss is None:
            self.variables.update(found.values)
            return held.model_copy(update={"captures": found.values})
        if held.captures:
            return held
        text = f"turn {held.turn_number}: {found.miss.message}"
        error = TurnError(kind="capture", message=text, evidence=answer.response[:2000])
        return held.model_copy(
            update={"status": "error", "reason": text, "error": error, "captures": found.values}
        )

    async def _stop_for_assertions(self, held: TurnRecord, turn: Turn) -> str | None:
        if self.case.on_turn_failure != "stop":
            return None
        threshold = self.case.pass_threshold
        failure = await self._settle(
            None, lambda context: turn_failure(held, turn, context, threshold)
        )
        if isinstance(failure, TurnError):
            update = {"status": "error", "reason": failure.message, "error": failure}
            self.turns[-1] = held.model_copy(update=update)
            return _why_stop(self.turns[-1])
        return f"not sent: {failure} (on_turn_failure: stop)" if failure else None

    async def _settle(
        self,
        about: TurnRecord | None,
        evaluate: Callable[[CheckContext], T],
        *,
        within: TurnRecord | None = None,
    ) -> T:
        """The value of `evaluate`; what only a judge can say is asked of the judge, if any.

        `within` is the turn that `about` is part of: a follow-up is judged in the light of it.
        """
        record = self._so_far()
        if within is not None:
            record = record.model_copy(update={"turns": [*record.turns, within]})
        context = CheckContext(record, about, self.live.blobs.read_state)
        judge = self.request.judge
        if judge is None:
            return await anyio.to_thread.run_sync(evaluate, context, abandon_on_cancel=True)
        return await judge.settle(lambda ask: evaluate(replace(context, ask=ask)))

    def _so_far(self) -> Record:
        return self.record.model_copy(update={"turns": list(self.turns)})

    def _notify(self, kind: Any, number: int, turns: int, text: str = "", **more: Any) -> None:
        self.request.notify(TrialEvent(self.request.job.id, kind, number, turns, text, **more))


def _by(message: Message, turn: TurnRecord) -> TurnRecord:
    """`turn`, which says who wrote its message."""
    if message.simulator is None:
        return turn
    update = {"source": "simulator", "simulator": message.simulator}
    return turn.model_copy(update={**update, "notes": [*turn.notes, *message.notes]})


def _why_stop(held: TurnRecord) -> str | None:
    """Why the conversation does not go on after `held`; None if it does."""
    if held.status == "error":
        return f"not sent: turn {held.turn_number} met an error"
    if held.status == "failed":
        return f"not sent: turn {held.turn_number} failed its post-condition"
    if held.post_condition_passed is False:
        return f"turn {held.turn_number}: {held.reason}"
    return None
