"""A trial from its empty workspace to its record; and turns that several trials have in common.

Those are run once, then every trial goes on from a fork: a copy of the workspace, and a fork of the
session.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio.to_thread

from skillup.dataclass import mutable
from skillup.engines.base import SessionForker
from skillup.engines.session_files import moved_text
from skillup.sandbox.base import Box
from skillup.schema.grade import Judging
from skillup.schema.record import Record, TurnError, TurnRecord
from skillup.schema.suite import lead_of
from skillup.trial.artifacts import collect_artifacts, keep_references
from skillup.trial.conversation import LiveConversation
from skillup.trial.history import turns_of
from skillup.trial.request import Interruption, TrialRequest, TrialResult
from skillup.trial.session import LiveSession, call_engine, look_at
from skillup.trial.setup import OpenTrial, context_of, ended, in_box, new_record, open_trial
from skillup.workspace.disk import copy_workspace, do_beside, refuse_without_room


async def run_trial(request: TrialRequest, resumed: OpenTrial | None = None) -> TrialResult:
    """Run the whole conversation of one job, or what is left of one that was `resumed` or forked.

    Never raises for what goes wrong within it. Raises RunDirectoryError if the run's own directory
    fails, and FullDiskError: then what came of it says nothing of the agent.
    """
    # What ran before counts as if it had run just now.
    clock = time.monotonic() - (resumed.earlier_seconds if resumed is not None else 0.0)
    record = resumed.record if resumed is not None else new_record(request)
    interruption: Interruption | None = None

    async def run() -> Record:
        nonlocal interruption
        case = request.job.loaded.case
        if case.input.transcript is not None:
            known = {**case.vars, **request.variables}
            turns = turns_of(case.input.transcript)
            return ended(record, clock, turns=turns, initial_variables=known)
        opened = resumed or await open_trial(request, record)
        if isinstance(opened, TurnError):
            return ended(record, clock, error=opened)
        conversation = LiveConversation(opened, clock)
        lead = lead_of(case)
        try:
            if lead is not None:
                await conversation.run_led(lead, opened.turns[len(opened.done) :])
            else:
                await conversation.run(opened.turns)
        finally:
            interruption = conversation.interruption
            await opened.session.close()
        return await close_trial(conversation)

    result = await record_on_error(run, record, clock)
    refuse_without_room(request.scratch)
    return TrialResult(result, interruption)


async def record_on_error(
    run: Callable[[], Awaitable[Record]], record: Record, clock: float
) -> Record:
    """What `run` makes of it; if it raises, `record` with the error that explains it."""
    made = await call_engine(run, "the trial could not be run")
    return made if isinstance(made, Record) else ended(record, clock, error=made)


async def close_trial(conversation: LiveConversation) -> Record:
    """The record of a conversation that is over, and the artifacts beside it."""
    record, live, request = conversation.record, conversation.session, conversation.request
    globs = request.job.loaded.case.collect_artifacts
    given = globs, live.snapshot, live.context.workspace, live.blobs, request.keep_artifact
    missed = await do_beside(not globs, collect_artifacts, *given)
    return ended(
        record,
        conversation.began + conversation.waited,
        turns=conversation.turns,
        notes=[*record.notes, *missed],
        session_id=live.session,
        variables=dict(conversation.variables),
        simulated_end=conversation.simulated_end,
        judging=conversation.judging(),
    )


def record_without_turns(
    request: TrialRequest, *, skipped: str | None = None, error: TurnError | None = None
) -> Record:
    """The record of a job that was not begun: skipped for a reason, or stopped by an error."""
    return ended(new_record(request), time.monotonic(), skipped=skipped, error=error)


# Turns that several trials have in common.

_INHERITED = (
    "sandbox", "skills", "initial_files", "initial_variables", "history", "execution_mode",
    "started_at", "notes",
)  # fmt: skip


@mutable
class SharedPrefix:
    """A conversation as far as it is shared; nothing more is sent in it.

    One record's job counts its turns; in the others they are `counted_by` that `owner`.
    """

    record: Record  # Without turns; its error is what kept them from being run
    conversation: LiveConversation | None
    used_seconds: float
    earlier_seconds: float

    @property
    def ended(self) -> bool:
        """Something has ended the conversation: there is nothing to fork."""
        live = self.conversation
        return live is None or self.record.error is not None or live.stop is not None

    def _turns(self, owner: str | None) -> list[TurnRecord]:
        turns = self.conversation.turns if self.conversation is not None else []
        return [
            turn
            if owner is None or turn.counted_by is not None or turn.status == "skipped"
            else turn.model_copy(update={"counted_by": owner})
            for turn in turns
        ]

    def _judging(self, owner: str | None) -> Judging | None:
        live = self.conversation
        return live.judging() if live is not None and owner is None else None

    async def record_of(
        self, request: TrialRequest, owner: str | None = None, error: TurnError | None = None
    ) -> Record:
        """The record of a trial that goes no further: the shared turns ended it, or an `error`."""
        clock, turns = time.monotonic() - self.earlier_seconds, self._turns(owner)
        start = {name: getattr(self.record, name) for name in (*_INHERITED, "references")}
        start["error"] = error or self.record.error
        record = new_record(request).model_copy(update=start)
        if self.conversation is None or record.error is not None:
            return ended(record, clock, turns=turns)
        # What ended the conversation is known to it: it says why the rest was not sent.
        rest = copy.copy(self.conversation)
        rest.earlier_judging = self._judging(owner)
        rest.request, rest.record, rest.turns = request, record, turns
        rest.began, rest.waited = clock, 0.0

        async def finish() -> Record:
            request.streams.copy_from(rest.session.context.streams)
            await rest.run(request.job.loaded.case.input.all_turns())
            return await close_trial(rest)

        return await record_on_error(finish, record, clock)

    async def fork(self, request: TrialRequest, owner: str | None = None) -> OpenTrial | TurnError:
        """The trial of `request`, ready to go on; an error if it cannot be."""
        what = "the trial could not be forked"
        fork = partial(self._fork, request, owner)
        return await call_engine(lambda: in_box(request, fork), what, request.scratch)

    async def _fork(
        self, request: TrialRequest, owner: str | None, box: Box, added: Mapping[str, str]
    ) -> OpenTrial | TurnError:
        parent = self.conversation
        assert parent is not None
        live, case = parent.session, request.job.loaded.case
        before = live.context
        workspace, home = ((request.scratch / name).resolve() for name in ("workspace", "home"))
        moved = partial(moved_text, old=str(before.workspace), new=str(workspace))
        await anyio.to_thread.run_sync(copy_workspace, before.workspace, workspace, moved)
        home.mkdir(mode=0o700, exist_ok=True)
        request.streams.copy_from(before.streams)
        skills = {
            name: workspace / path.relative_to(before.workspace)
            for name, path in before.skills.items()
        }
        context = context_of(request, workspace, home, added, skills, box=box)
        engine, session = live.engine, live.session
        assert isinstance(engine, SessionForker)
        if session is None:
            what = "the turns before the fork left no session to go on with"
            return TurnError(kind="session_lost", message=what)
        what = f"session {session} could not be forked"
        placed = await call_engine(lambda: engine.fork(session, before, context), what, before.home)
        if isinstance(placed, TurnError):
            return placed
        if placed.error is not None:
            return placed.error
        variables = {name: moved(value) for name, value in parent.variables.items()}
        changed = [name for name in sorted(variables) if variables[name] != parent.variables[name]]
        where = "holds a path of the workspace, and means the same place of this fork's copy"
        notes = [*self.record.notes, *(f"<<{name}>> {where}" for name in changed), *placed.notices]
        start = {name: getattr(self.record, name) for name in _INHERITED}
        root, known = request.job.suite.root, self.record.initial_variables
        start["references"] = keep_references(case, root, request.blobs, known)
        record = new_record(request).model_copy(update={**start, "notes": notes})
        snapshot = await look_at(workspace, request.blobs)
        state = placed.session, placed.fingerprint or live.fingerprint, live.messages
        forked = LiveSession(engine, context, request.blobs, snapshot, *state)
        forked.prompts = tuple(map(moved, live.prompts))
        earlier = self._turns(owner), self.used_seconds, self.earlier_seconds, self._judging(owner)
        return OpenTrial(request, record, forked, case.input.all_turns(), variables, *earlier)


async def run_shared_prefix(
    request: TrialRequest, count: int, fork: OpenTrial | None = None
) -> SharedPrefix:
    """Run the first `count` turns of the job in a place of their own; a `fork` has some already."""
    clock = time.monotonic() - (fork.earlier_seconds if fork is not None else 0.0)
    live: LiveConversation | None = None
    record = fork.record if fork is not None else new_record(request)

    async def run() -> Record:
        nonlocal live
        opened = fork or await open_trial(request, record)
        if isinstance(opened, TurnError):
            return record.model_copy(update={"error": opened})
        live = LiveConversation(opened, clock)
        try:
            await live.run(opened.turns, until=count)
        finally:
            await opened.session.close()
        return opened.record

    record = await record_on_error(run, record, clock)
    used, waited = (live.used_seconds(), live.waited) if live is not None else (0.0, 0.0)
    return SharedPrefix(record, live, used, time.monotonic() - clock - waited)
