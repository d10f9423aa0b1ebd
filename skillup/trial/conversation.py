"""A conversation, turn by turn: fill in, send, gate, follow up, capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import anyio.to_thread

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import (
    evaluate_checks,
    evaluate_set,
    evaluate_turn,
    follow_ups,
    passes,
    reaches,
    unmet,
    weighted_mean,
)
from skillup.checks.text import capture
from skillup.engines.base import TurnRequest
from skillup.errors import FullDiskError, RunDirectoryError
from skillup.ratelimit import ANSWERED, REFUSALS, THE_RUNS_END, with_refusals
from skillup.schema import templates
from skillup.schema.case import PostCondition, Turn
from skillup.schema.checks import Check
from skillup.schema.grade import Judging, deciding
from skillup.schema.record import (
    Checkpoint,
    ErrorKind,
    SimulatedEnd,
    TurnError,
    TurnRecord,
    joined,
    total_cost,
)
from skillup.schema.suite import Lead, lead_of, needs_simulator
from skillup.trial.request import Interruption, SimulatorMessage, SimulatorPart, TrialEvent
from skillup.trial.session import first_error, internal_error, not_sent, unwritten, with_error
from skillup.trial.setup import OpenTrial, filled_once, request_digest
from skillup.workspace.disk import do_beside, refuse_full_disk

T = TypeVar("T")


class LiveConversation:
    """The conversation of one trial, as far as it has been run."""

    def __init__(self, trial: OpenTrial, clock: float | None = None) -> None:
        """The trial began at `clock` (monotonic), with all that ran before; default: now."""
        self.request = trial.request
        self.case = trial.request.job.loaded.case
        self.session = trial.session
        self.variables = trial.variables
        self.record = trial.record  # The trial's, without turns: what checks see beside the turn
        self.turns: list[TurnRecord] = list(trial.done)
        self.simulated_end: SimulatedEnd | None = None
        self.interruption: Interruption | None = None
        self.waited = 0.0  # Seconds that it waited for its provider: no time of the trial's
        initial = trial.record.initial_variables
        self._system, self._answers = filled_once(self.case.input, initial)
        self.stop: str | None = None  # Why what would come next is not sent
        now = time.monotonic()
        self.began = now - trial.earlier_seconds if clock is None else clock
        self._opened = now - trial.used_seconds
        self.earlier_judging = trial.judging
        self._asked = cache(lambda: request_digest(trial.request))  # The same after every turn
        # With skill-up's scenario, `max_turns` counts the user's messages, if nothing else does.
        led = self.case.user_simulator is not None and lead_of(self.case) is not None
        counts_messages = led and self.case.turn_limit is None
        self._max_steps = None if counts_messages else self.case.max_turns

    def judging(self) -> Judging | None:
        """What judges have used so far, in all parts of the conversation."""
        judge = self.request.judge
        return joined(self.earlier_judging, judge.judging() if judge else None)

    def used_seconds(self) -> float:
        """How long the conversation has taken, without waits."""
        return max(0.0, time.monotonic() - self._opened - self.waited)

    async def run(self, turns: Sequence[Turn], *, until: int | None = None) -> None:
        """What is left of `turns`, all of the case's, up to turn `until` (default: the last).

        Where something ends the conversation, the turns after it are `skipped`.
        """
        for number, turn in enumerate(turns[:until], start=1):
            if number <= len(self.turns):
                continue
            if self.stop is not None:
                self.turns.append(not_sent(number, turn.content or turn.respond or "", self.stop))
                continue
            await self.run_next(turn, of=len(turns))
            if number < len(turns) and self.stop is None:
                await self._write_checkpoint()

    async def _write_checkpoint(self) -> None:
        """Store what another process needs to go on after the turn; nothing if not all is known.

        What a simulated user would say next is not known to anybody else, and shared turns belong
        to several trials: there is no checkpoint of those.
        """
        request, job, session = self.request, self.request.job, self.session
        clean = job.profile.isolation == "clean" and not job.family
        if request.checkpoint is None or not clean or needs_simulator(self.case):
            return
        backup, context = await session.backup(), session.context
        if backup.files is None or backup.workspace is None or session.fingerprint is None:
            return
        checkpoint = Checkpoint(
            record=self.record.model_copy(
                update={"turns": [*self.turns], "judging": self.judging()}
            ),
            variables=dict(self.variables),
            messages=session.messages,
            session=session.fingerprint,
            chosen_session_id=context.session_id,
            skills={
                name: path.relative_to(context.workspace).as_posix()
                for name, path in context.skills.items()
            },
            session_files=backup.files,
            workspace_sha256=backup.workspace,
            asked_sha256=self._asked(),
            elapsed_ms=round(max(0.0, time.monotonic() - self.began - self.waited) * 1000),
            elapsed_seconds=self.used_seconds(),
        )
        await do_beside(len(session.snapshot.files) < 100, request.checkpoint, checkpoint)

    async def run_led(self, lead: Lead, opening: Sequence[Turn]) -> None:
        """A conversation that a simulated user leads, with `opening` messages before the user's.

        How the user ended it is in `simulated_end`; an error of theirs is a turn's.
        """
        of = lead.max_turns
        for turn in opening:
            if self.stop is None:
                await self.run_next(turn, of=of)
        while self.stop is None:
            left = lead.max_turns - len(self.turns)
            if left <= 0 and not lead.must_end:
                reason = f"{lead.max_turns} turns were run, the most that `max_turns` allows"
                self.simulated_end = SimulatedEnd(stop="limit", reason=reason)
                return
            number = len(self.turns) + 1
            written = await self._write(messages_left=max(left, 0))
            if written.error is None and written.stop is not None:
                end = SimulatedEnd(stop=written.stop, reason=written.reason, info=written.info)
                if written.text is not None and left > 0:  # last words, which are answered
                    end = end.model_copy(update={"info": None})
                    await self.run_next(Turn(content=written.text), of=of, message=written)
                self.simulated_end = end if self.stop is None else None
                return
            if written.error is None and left <= 0:
                why = f"the simulated user wanted to go on beyond {lead.max_turns} turns"
                text = f"turn {number}: {why}; raise `turn_limit`"
                written = replace(written, error=TurnError(kind="max_turns", message=text))
            if written.error is not None or written.text is None:
                self.turns.append(unwritten(number, written))
                return
            await self.run_next(Turn(content=written.text), of=of, message=written)

    async def run_next(
        self, turn: Turn, *, of: int, message: SimulatorMessage | None = None
    ) -> None:
        """The next turn, one `of` so many at most; `message`: what the simulated user wrote."""
        number = len(self.turns) + 1
        result: str | TurnRecord
        if message is None and turn.respond is not None:
            instruction = templates.escape(turn.respond) if turn.literal else turn.respond
            message = await self._write(instruction)
        if message is None:
            result = self._filled_in(turn.content or "", literal=turn.literal)
        elif message.error is not None or message.text is None:
            result = unwritten(number, message, turn.respond or "")
        else:
            result = message.text
        self._notify("turn_started", number, of, message.text or "" if message is not None else "")
        if isinstance(result, str):
            result = await self._run_turn(turn, result, message)
        self.turns.append(result)
        messages = list(result.executed())
        tokens = total_cost(one.usage.tokens() for one in messages if one.usage is not None)
        cost = total_cost(one.cost_usd for one in messages)
        self._notify("turn_ended", number, of, result.status, tokens=tokens, cost_usd=cost)
        self.stop = _why_stop(result)
        if self.stop is None and self.case.on_turn_failure == "stop":
            self.stop = await self._stop_for_assertions(result, turn)

    async def _write(
        self, instruction: str | None = None, messages_left: int | None = None
    ) -> SimulatorMessage:
        """The simulated user's next message, within the time left; an error names its turn.

        Without an `instruction` the user leads, and may write so many messages more.
        """
        request, case, number = self.request, self.case, len(self.turns) + 1

        def failed(kind: ErrorKind, message: str) -> SimulatorMessage:
            return SimulatorMessage(error=TurnError(kind=kind, message=f"turn {number}: {message}"))

        led, user = case.input.conversation, case.user_simulator
        said = [(step.content, step.response) for turn in self.turns for step in turn.executed()]
        try:
            part = SimulatorPart(
                persona=templates.fill("persona", led and led.persona, self.variables),
                scenario=templates.fill("scenario", user and user.scenario, self.variables),
                instruction=templates.fill("instruction", instruction, self.variables),
                said=said,
                history=self.record.history,
                messages_left=messages_left,
                may_stop=instruction is None and bool(self.turns),
            )
        except templates.UnresolvedNameError as missing:
            return failed("template", f"{missing}; nobody was asked")
        if request.simulator is None:
            return failed("judge", "there is nobody to play the user")
        self._notify("activity", 0, 0, "the simulated user is writing")
        message: SimulatorMessage | None = None
        limit = case.timeout_seconds
        seconds = None if limit is None else max(0.0, limit - self.used_seconds())
        with anyio.move_on_after(seconds):
            try:
                message = await request.simulator(part)
            except (RunDirectoryError, FullDiskError):
                raise
            except Exception as defect:  # noqa: BLE001 - a defect of ours must not end the run
                if isinstance(defect, OSError):
                    refuse_full_disk(defect)
                return SimulatorMessage(error=internal_error(defect))
        if message is None:
            what = f"the conversation's {limit:g} s were used up while the simulated user was"
            return failed("timeout", f"{what} writing; raise `timeout_seconds`")
        if message.error is None:
            return message
        if message.error.kind in THE_RUNS_END and request.throttle is not None:
            self.interruption = Interruption("run_ended")
        text = f"turn {number}: {message.error.message}"
        error = message.error.model_copy(update={"message": text})
        return SimulatorMessage(info=message.info, error=error)

    def _filled_in(self, content: str, *, literal: bool) -> str | TurnRecord:
        """`content` with its templates filled in; if a name has no value, an error."""
        try:
            return content if literal else str(templates.fill("content", content, self.variables))
        except templates.UnresolvedNameError as missing:
            return self._kept_back("template", f"{missing}; the agent was not called", content)

    def _kept_back(self, kind: ErrorKind, why: str, content: str) -> TurnRecord:
        """The turn that runs now, with a message that was not sent."""
        number = len(self.turns) + 1
        text = f"turn {number}: {why}"
        return not_sent(number, content, text, error=TurnError(kind=kind, message=text))

    async def _run_turn(
        self, turn: Turn, text: str, written: SimulatorMessage | None
    ) -> TurnRecord:
        stem, source = f"turn-{len(self.turns) + 1:02d}", "case" if written is None else "simulator"
        result = await self._send(turn, text, stem, source)
        if written is not None:
            result = result.model_copy(update={"source": source, "simulator": written.info})
        if result.status != "completed":
            return result
        if turn.post_condition is not None:
            result = await self._gate(result, turn.post_condition)
            if result.status != "completed" or result.post_condition_passed is False:
                return result
        # Its checks and follow-ups may use what it captures; follow-ups may mend a miss.
        captured = await self._capture(result, turn)
        result = result if captured.error is not None else captured
        if any(check.prompt is not None for check in turn.checks()):
            result, _ = await self._follow_up(turn.checks(), result, turn, [result])
        if result.status != "completed" or (result.captures and not result.follow_ups):
            return result
        return await self._capture(result, turn)

    async def _follow_up(
        self, checks: Sequence[Check], answer: TurnRecord, turn: Turn, sent: list[TurnRecord]
    ) -> tuple[TurnRecord, bool]:
        """`answer` with the follow-ups that its failing checks ask for; whether it passes now.

        The first whose own checks pass ends it; so does an error, which becomes the turn's. This
        adds to `sent`: the turn's first answer, then its follow-ups.
        """
        within = sent[0].model_copy(update={"follow_ups": list(sent[1:])})
        results = await self._evaluate(
            answer, lambda context: evaluate_checks(checks, context), within=within
        )
        what = "the check `{}`, on which a follow-up depends, could not be evaluated"
        error = first_error(results, what)  # then nobody knows what is next
        if error is not None:
            return with_error(answer, error), False
        done: list[TurnRecord] = []
        passed = passes(results)
        for place, check in follow_ups(checks, results):
            followed = self._filled_in(check.prompt or "", literal=check.literal)
            if isinstance(followed, str):
                stem = f"turn-{answer.turn_number:02d}-follow-up-{len(sent)}"
                followed = await self._send(turn, followed, stem)
            asked_by = [*answer.asked_by, place]
            followed = followed.model_copy(update={"source": "follow_up", "asked_by": asked_by})
            sent.append(followed)
            mended = False
            if followed.status == "completed":
                nested = check.assertions or []
                followed, mended = await self._follow_up(nested, followed, turn, sent)
            done.append(followed)
            if followed.error is not None:
                answer = with_error(answer, followed.error)
                return answer.model_copy(update={"follow_ups": done}), False
            if mended:
                passed = True
                break
        return (answer.model_copy(update={"follow_ups": done}) if done else answer), passed

    async def _send(
        self, turn: Turn, text: str, stem: str, source: str = "follow_up"
    ) -> TurnRecord:
        """Send one message, if there is time left for it; again, where the provider refused it.

        Before each time, the session is what it was before the message. What refused messages used
        is in the turn's usage and cost; their time does not count, nor does that of waiting.
        """
        throttle, session = self.request.throttle, self.session
        if throttle is None:
            return await self._send_once(turn, text, stem, source)
        refused: list[TurnRecord] = []
        paused = 0.0
        while (pause := await throttle.ready()) is not None:
            paused += pause
            self.waited += pause
            backup, began = await session.backup(), time.monotonic()
            result = await self._send_once(turn, text, stem, source, len(refused) + 1)
            if result.error is None or result.error.kind not in REFUSALS:
                if result.error is None or result.error.kind in ANSWERED:
                    throttle.accepted()
                return with_refusals(result, refused, paused)
            if throttle.refused(result.error) is not None:
                if throttle.closed:
                    self.interruption = Interruption("run_ended")
                return with_refusals(result, refused, paused)
            problem = await session.restore(backup)
            if problem is not None:
                self.interruption = Interruption("restart", problem)
                return with_refusals(result, refused, paused)
            refused.append(result)
            session.context.streams.set_aside(stem, "refused")
            self.waited += time.monotonic() - began
        self.interruption = Interruption("run_ended")
        return self._kept_back("cancelled", "the run ended before the message was sent", text)

    async def _send_once(
        self, turn: Turn, text: str, stem: str, source: str, sending: int = 1
    ) -> TurnRecord:
        number, profile = len(self.turns) + 1, self.request.job.profile
        whole = self.case.timeout_seconds
        own = turn.timeout_seconds or profile.timeout_seconds
        left = own if whole is None else max(0.0, min(own, whole - self.used_seconds()))
        # What is left of it differs from trial to trial, and would set the same errors apart.
        all_of_it = f"the conversation's {whole or own:g} s"
        if left <= 0:
            why = f"{all_of_it} are used up; raise `timeout_seconds`"
            return self._kept_back("timeout", why, text)
        source = "again" if sending > 1 else source
        self._notify("message_sent", number, 0, text, source=source)
        request = TurnRequest(
            number=self.session.messages + 1,
            prompt=text,
            stem=stem,
            slash_command=turn.slash_command,
            system=self._system,
            answers=self._answers,
            timeout_seconds=left,
            limit=all_of_it if left < own else "",
            max_steps=self._max_steps or profile.max_turns,
            previous=self.session.fingerprint,
            sending=sending,
        )
        return await self.session.send(request, number)

    async def _gate(self, answer: TurnRecord, gate: PostCondition) -> TurnRecord:
        """The turn with what its post-condition found."""
        results = await self._evaluate(
            answer, lambda context: evaluate_set(gate, context, role="post_condition")
        )
        answer = answer.model_copy(update={"post_condition": results})
        error = first_error(results, "the post-condition `{}` could not be evaluated")
        if error is not None:
            return with_error(answer, error)
        failed = next((result for result in results if not result.passed), None)
        update: dict[str, Any] = {"post_condition_passed": failed is None}
        if failed is not None:
            update["reason"] = f"post-condition not met: {failed.name}: {failed.found}"
            if gate.on_fail == "fail":
                update["status"] = "failed"
            else:
                update["reason"] += f" (on_fail: {gate.on_fail})"
        return answer.model_copy(update=update)

    async def _capture(self, result: TurnRecord, turn: Turn) -> TurnRecord:
        """Take the captures out of the last answer; else those of the first answer stand.

        A miss in both makes the turn an error.
        """
        if not turn.capture:
            return result
        answer = result.last_answer()
        found = await anyio.to_thread.run_sync(
            capture, turn.capture, answer, abandon_on_cancel=True
        )
        if found.miss is None:
            self.variables.update(found.values)
            return result.model_copy(update={"captures": found.values})
        if result.captures:
            return result
        text = f"turn {result.turn_number}: {found.miss}"
        error = TurnError(kind="capture", message=text, evidence=answer.response[:2000])
        return with_error(result, error).model_copy(update={"captures": found.values})

    async def _stop_for_assertions(self, result: TurnRecord, turn: Turn) -> str | None:
        """Why the conversation ends here (`on_turn_failure: stop`); None: it goes on.

        Without a `pass_threshold` every check must pass.
        """
        own, sent, passed_on = await self._evaluate(
            None, lambda context: evaluate_turn(turn.checks(), result, context)
        )
        results = [*own, *(result for one in sent for result in one.checks)]
        what = "the check `{}` could not be evaluated (on_turn_failure: stop)"
        error = first_error(results, what)
        if error is not None:
            self.turns[-1] = with_error(result, error)
            return _why_stop(self.turns[-1])
        decisive, threshold = deciding(own, sent, passed_on), self.case.pass_threshold
        failed = unmet(decisive)
        if not failed or (
            threshold is not None
            and not any(one.required for one in failed)
            and reaches(weighted_mean(decisive), threshold)
        ):
            return None
        name = failed[0].name
        return f"not sent: turn {result.turn_number} failed: {name} (on_turn_failure: stop)"

    async def _evaluate(
        self,
        about: TurnRecord | None,
        work: Callable[[CheckContext], T],
        *,
        within: TurnRecord | None = None,
    ) -> T:
        """The value of `work`; what only a judge can say is asked of the judge, if any.

        `within` is the turn that `about` is part of: a follow-up is judged in the light of it.
        """
        turns = [*self.turns] if within is None else [*self.turns, within]
        record = self.record.model_copy(update={"turns": turns})
        context = CheckContext(record, about, self.session.blobs.read_state)
        judge = self.request.judge
        if judge is None:
            return await anyio.to_thread.run_sync(work, context, abandon_on_cancel=True)
        return await judge.evaluate(lambda ask: work(replace(context, ask=ask)))

    def _notify(self, kind: Any, number: int, turns: int, text: str = "", **more: Any) -> None:
        self.request.notify(TrialEvent(self.request.job.id, kind, number, turns, text, **more))


def _why_stop(turn: TurnRecord) -> str | None:
    """Why the conversation does not go on after `turn`; None if it does."""
    if turn.status == "error":
        return f"not sent: turn {turn.turn_number} met an error"
    if turn.status == "failed":
        return f"not sent: turn {turn.turn_number} failed its post-condition"
    if turn.post_condition_passed is False:
        return f"turn {turn.turn_number}: {turn.reason}"
    return None
