"""One turn of any CLI agent as one process: started, read, checked against its session's file."""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio.to_thread

from skillup.dataclass import frozen
from skillup.engines.base import Availability, EngineTurn, TrialContext, TurnRequest, cost_usd
from skillup.engines.environment import (
    EngineHome,
    Login,
    clean_variables,
    find_login,
    login_problem,
    login_secrets,
    renewed_once,
    trial_environment,
)
from skillup.engines.events import (
    ADVICE,
    EventParser,
    Failure,
    KindsByText,
    failure_of_model,
    kind_of_text,
    parse_retry_after,
    shortened,
)
from skillup.engines.session_files import (
    SessionReader,
    VersionRange,
    fingerprint_of,
    loss_of,
    missing_message,
    own_file,
    size_of,
)
from skillup.process.live import LiveSlot
from skillup.process.run import ProcessOutcome, ProcessRequest, run_process, run_quiet
from skillup.redaction.secrets import Secrets
from skillup.schema.profile import Profile
from skillup.schema.record import ErrorKind, ProcessInfo, SessionFingerprint, TurnError
from skillup.workspace.disk import do_beside, is_own_directory

T = TypeVar("T")

_LAST_LINES, _LINE_CHARACTERS = 4, 500
_SHORT_BYTES = 1 << 20
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?([\w.+-]*\w)?")
_VERSION_SECONDS = 60.0


@frozen
class CliSpec:
    """What differs between CLIs, as far as it is data."""

    name: str  # The program, and what messages call the agent
    install: str  # How to get it
    login: str  # How to log in
    skill_directories: Sequence[str]  # Where, relative to the workspace, it looks for skills
    home: EngineHome | None = None
    keys: Sequence[str] = ()  # Its own variables that may hold the key, best first
    session_word: str = "session"
    takes_ids: bool = True  # A new session gets the id that we choose
    takes_system: bool = True  # More for its system prompt
    stderr: KindsByText = field(default_factory=dict)  # What it means where no event says it
    exit_codes: Mapping[int, ErrorKind] = field(default_factory=dict)  # The same of exit codes
    writable: VersionRange | None = None  # Sessions that skillup wrote for these were resumed
    install_writable: str = ""  # How to get a version whose sessions can be written
    two_way: bool = False  # Both sides ask and answer; it need not end by itself after an answer


class CliTurn:
    """A turn of the session `resumed`, or the first one of a new session."""

    parser: EventParser  # From the moment when the process is to be started

    def __init__(
        self, engine: CliEngine, turn: TurnRequest, trial: TrialContext, resumed: str | None
    ) -> None:
        self.engine, self.turn, self.trial, self.resumed = engine, turn, trial, resumed
        self.live = trial.live or (LiveSlot(stays=False) if engine.spec.two_way else None)
        self.ended_between = False  # The process that was to stay
        self.expected = resumed or (trial.session_id if engine.spec.takes_ids else None)
        self.known: Collection[Path] = ()  # Sessions that were there before a new one
        self.own_files = trial.profile.isolation != "shared"  # Of sessions, and no others

    async def run(self) -> EngineTurn:
        engine, trial, turn = self.engine, self.trial, self.turn
        login = engine.login(trial)
        if refusal := engine.refusal(trial, login):
            return EngineTurn(error=refusal)
        if turn.system and not engine.spec.takes_system:
            what = "it takes no system prompt: leave `input.system` out, or use another engine"
            return EngineTurn(error=engine.error("unsupported", what))
        env = engine.environment(trial, login)
        self.home = engine.engine_home(trial, env)
        if self.live is not None and self.live.parser is not None:
            in_it = self.live.parser.session_id
            self.ended_between = not (self.live.is_ready and in_it == self.resumed)
        if self.resumed and (error := await self._with_file(self._changed)):
            return EngineTurn(self.resumed, session_verified=False, error=error)
        if self.live is not None and self.ended_between:
            await self.live.end()
        if not self.resumed and not engine.spec.takes_ids:
            self.known = await do_beside(self.own_files, engine.session_files, self.home)
        by_file = login.variable is None and engine.uses_login_file(trial.profile)
        home = engine.spec.home if by_file else None
        async with renewed_once(trial, home, env, turn.timeout_seconds) as self.renewed:
            arguments = engine.arguments(turn, trial, self.resumed, login)
            argv = (*engine.command(trial.profile), *arguments)
            self.parser = engine.parser(turn, trial, self.resumed)
            stayed = self.live is not None and self.live.process is not None
            argv = self.live.argv if self.live is not None and stayed else argv
            result = await self._process(argv, env)
        if stayed and self.parser.session_id is None and result.error is not None:
            self.ended_between = result.error.kind == "crash"
            if self.ended_between and not await self._with_file(self._changed):
                # It had died before it took the message.
                return await type(self)(engine, turn, trial, self.resumed).run()
        return self._answered(await self._with_file(self._checked, result))

    def _answered(self, result: EngineTurn) -> EngineTurn:
        """The turn with its answer, if that counts, and its cost."""
        well = result.error is None
        costs = cost_usd(self.trial.profile, result.model, result.usage), result.cost_usd
        cost = next((one for one in costs if one or (well and one is not None)), None)
        return replace(result, response=self.parser.response if well else "", cost_usd=cost)

    async def _with_file(self, work: Callable[..., T], *more: Any) -> T:
        """`work(file, *more)` with the session's file, or None if there is none.

        Beside the event loop where it is long, or has to be found among all that are a user's own.
        """
        session_id = self.expected or self.parser.session_id

        def find() -> Path | None:
            rows = self.engine.session_rows
            return rows(self.trial, self.home, session_id) if session_id else None

        if not self.own_files:
            return await anyio.to_thread.run_sync(lambda: work(find(), *more))
        file = find()
        small = file is None or size_of(file) < _SHORT_BYTES
        return await do_beside(small, work, file, *more)

    def _changed(self, file: Path | None) -> TurnError | None:
        """What happened to the session's file since the turn before; None: nothing."""
        engine, session_id, previous = self.engine, self.resumed or "", self.turn.previous
        if previous is None:
            return None
        if (loss := loss_of(file, previous)) is not None:
            return engine.lost(session_id, loss)
        before = previous.prefix_bytes
        added = file.stat().st_size - before if file is not None else 0
        if not added:
            return None
        # A live process writes a last line when it ends; what it had done was written before.
        now = engine.fingerprint(file, session_id) if self.ended_between else None
        if now is not None and now.messages == previous.messages:
            return None
        what = f"something else wrote to the {engine.spec.session_word} {session_id} between"
        sizes = f"{file}: it held {before} bytes after the turn before; {added} were added"
        return engine.error("session_mismatch", f"{what} two turns", sizes)

    def _checked(self, file: Path | None, result: EngineTurn) -> EngineTurn:
        """The turn, compared with what its session's file held before and holds now."""
        engine, trial, parser, expected = self.engine, self.trial, self.parser, self.expected
        previous, error = self.turn.previous, result.error
        answered, word = parser.session_id, engine.spec.session_word
        if error is None and answered is None:
            error = engine.error("protocol", f"it did not say which {word} the answer is from")
        elif error is None and expected not in (None, answered):
            what = f"the answer is from the {word} {answered}, not from {expected}"
            error = engine.error("session_mismatch", what)
        session_id = expected or answered
        now = engine.fingerprint(file, session_id) if session_id else None
        if error is None and expected is None and (file is None or file in self.known):
            what = f"the {word} {answered} left no new session file"
            error = engine.error("session_mismatch", what)
        verified, loss = None, loss_of(file, previous) if previous is not None else None
        lost = loss is not None
        if previous is not None:
            if not lost and error is None:
                loss = missing_message(now, previous)
            verified = loss is None and answered in (None, expected)
            # That explains what the agent does not know any more.
            if loss is not None and (error is None or error.kind == "model_error"):
                error = engine.lost(session_id, loss, parser.response)
        notices = list(result.notices)
        if error is None and session_id and (now is None or not now.messages):
            # A next turn has nothing to build on: said where it begins, of whichever adapter.
            if previous is None and not self.turn.slash_command:
                where = f"{file} holds no user message" if now else "no file of it was found"
                notices.append(f"the {word} {session_id} cannot be resumed: {where}")
            now = now or SessionFingerprint(session_id=session_id, messages=0)
        result = replace(
            result,
            session=answered if answered and answered in (None, session_id) else None,
            fingerprint=now,
            session_verified=verified,
            notices=notices,
            error=error,
        )
        return engine.finish(result, self.turn, trial, None if lost else file)

    async def _process(self, argv: tuple[str, ...], env: Mapping[str, str]) -> EngineTurn:
        """Feeds the process's lines to the parser."""
        engine, turn, trial, parser = self.engine, self.turn, self.trial, self.parser
        workspace = os.fspath(trial.workspace)
        if not is_own_directory(workspace):
            # Through a link, an agent would work somewhere else.
            what = f"the workspace {workspace} is gone or was replaced; the agent was not called"
            return EngineTurn(error=engine.error("setup", what))
        missing = engine.missing(argv[0], env, trial.workspace)
        if missing is not None and not trial.box.has_own_programs:
            return EngineTurn(error=missing)
        variables = {**trial.environment, **trial.extra_env}
        secrets = trial.secrets.also_of(variables, (trial.profile.api_key_env,))
        if tokens := login_secrets(engine.login_file(env)):
            secrets = secrets.also(tokens)
        stem = turn.stem or f"turn-{turn.number:02d}"
        last_lines: deque[bytes] = deque(maxlen=_LAST_LINES)

        def take(line: bytes) -> bytes:
            last_lines.append(line[:_LINE_CHARACTERS])
            parser.feed(line)
            outgoing, parser.outgoing = parser.outgoing, b""
            return outgoing

        def redact(line: bytes) -> bytes:
            self.renewed(secrets)  # there may be new ones
            return secrets.mask_bytes(line)

        stdout = trial.streams.open(f"{stem}.stdout.jsonl")
        stderr = trial.streams.open(f"{stem}.stderr.txt")
        direct = ProcessRequest(
            argv=argv,
            cwd=trial.workspace,
            env=env,
            stdin=parser.outgoing,
            timeout_seconds=turn.timeout_seconds,
            stdout=stdout.write,
            stderr=stderr.write,
            marker=trial.marker,
            has_answered=lambda: parser.closed,
            redact=redact if secrets else None,
            lingers=engine.spec.two_way,
            farewell=parser.farewell,
        )
        parser.outgoing = b""
        with closing(stdout), closing(stderr):
            if self.live is None:
                outcome = await trial.box.run(direct, lambda request: run_process(request, take))
            else:
                run = self.live.run
                stays = lambda: parser.is_settled  # noqa: E731
                outcome = await trial.box.run(direct, lambda request: run(request, take, stays))
                self.live.parser, self.live.argv = parser, argv
        return self._turn_of(outcome, argv, secrets, b"\n".join(last_lines))

    def _turn_of(
        self, outcome: ProcessOutcome, argv: Sequence[str], secrets: Secrets, last_lines: bytes
    ) -> EngineTurn:
        engine, parser, route, error = self.engine, self.parser, self.trial.gateway, None
        parser.end()
        waited = outcome.ended_by == "timeout"
        last = route.final_failure(waited=waited) if route is not None else None
        if failure := failure_of_model(last) if last is not None else self._failure(outcome):
            evidence = [failure.text] if len(failure.text) > 300 else []
            evidence += parser.notices[-3:]
            if outcome.stderr_tail.strip():
                evidence.append(f"stderr: {shortened(outcome.stderr_tail, 1500)}")
            if last_lines:
                evidence.append(f"last lines of stdout:\n{last_lines.decode(errors='replace')}")
            shown = secrets.mask("\n".join(evidence))
            error = engine.error(failure.kind, secrets.mask(failure.text), shown)
        notices = [*parser.notices]
        notices += [f"process {p.pid} ({p.name}) could not be ended" for p in outcome.survivors]
        if outcome.ended_by == "answered" and not engine.spec.two_way:
            what = f"{engine.spec.name} did not end by itself after its answer, and was ended"
            notices.append(what)
        if route is not None:  # another one in every trial
            argv = [argument.replace(route.url, route.upstream) for argument in argv]
        process = ProcessInfo(
            argv=secrets.mask("\0".join(argv)).split("\0"),
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            ended_by=outcome.ended_by,
            leftover_processes=len(outcome.leftover),
        )
        return EngineTurn(
            items=parser.items,
            usage=parser.usage,
            cost_usd=parser.cost_usd,
            model=parser.model,
            version=parser.version,
            process=process,
            unknown_events=parser.unknown_events,
            unread_lines=parser.unread_lines,
            notices=notices,
            error=error,
        )

    def _failure(self, outcome: ProcessOutcome) -> Failure | None:
        """The first thing that went wrong, in the order of what explains the rest."""
        parser, turn, meanings = self.parser, self.turn, self.engine.spec.stderr
        code, lines = outcome.exit_code, outcome.stderr_tail.strip().splitlines()
        last_line = lines[-1].strip() if lines else ""
        if outcome.ended_by == "not_started":
            return Failure("engine_not_usable", outcome.start_error or "it did not start")
        if outcome.ended_by == "timeout":
            limit = turn.limit or f"{turn.timeout_seconds:g} s"
            return Failure("timeout", f"no answer within {limit}; it was ended")
        if outcome.ended_by == "output_limit":
            return Failure("output_limit", "it wrote more output than is allowed, and was ended")
        if parser.failure is not None:
            return parser.failure
        if parser.finished and (outcome.ended_by in ("answered", "kept") or code == 0):
            return None
        if outcome.signal is not None:
            return Failure("crash", f"it was killed by signal {outcome.signal}")
        for line in reversed(lines):
            if kind := kind_of_text(line, meanings):
                return Failure(kind, line.strip())
        if kind := self.engine.spec.exit_codes.get(code or 0):
            return Failure(kind, last_line or f"exit code {code}")
        what = f"it ended with exit code {code}" + " after its answer" * parser.finished
        if code == 0:
            return Failure("protocol", f"{what} but without the event that ends a turn")
        if code in (126, 127) and not parser.items:
            return Failure("engine_not_usable", f"it did not start: {last_line}")
        return Failure("crash", f"{what}: {last_line}" if last_line else what)


class CliEngine(ABC):
    """An :class:`~skillup.engines.base.Engine` that resumes sessions, for a CLI described so."""

    name: str
    spec: CliSpec
    turns: type[CliTurn] = CliTurn
    sessions: type[SessionReader] | None = None  # Of the sessions that its users have of their own

    @abstractmethod
    def arguments(
        self, turn: TurnRequest, trial: TrialContext, session_id: str | None, login: Login
    ) -> list[str]:
        """What follows the command; with `session_id` None the turn begins a new session."""

    @abstractmethod
    def parser(self, turn: TurnRequest, trial: TrialContext, session_id: str | None) -> EventParser:
        """For the events of one turn, with what the process is to read of it."""

    def session_file(self, engine_home: Path, session_id: str) -> Path | None:
        """The session's file; None if there is none."""
        return min(self.session_files(engine_home, session_id), default=None)

    def session_rows(self, trial: TrialContext, engine_home: Path, session_id: str) -> Path | None:
        """A file with what the session holds, one line for each row; None if there is none."""
        file = self.session_file(engine_home, session_id)
        return file if trial.profile.isolation == "shared" else own_file(file, trial.home)

    def session_files(self, engine_home: Path, session_id: str | None = None) -> Collection[Path]:
        """Those of a session; of a CLI that chooses the ids of new ones also all that are there."""
        return ()

    @abstractmethod
    def is_user_message(self, row: dict[str, Any]) -> bool:
        """Whether a line of a session's file is a message that somebody sent."""

    def key_variables(self, profile: Profile, environment: Mapping[str, str]) -> Sequence[str]:
        """The CLI's own variables that may hold the key, best first."""
        return self.spec.keys

    def login(self, trial: TrialContext) -> Login:
        """How this trial logs in."""
        own = self.key_variables(trial.profile, trial.environment)
        return find_login(trial.profile, {**trial.environment, **trial.extra_env}, own)

    def refusal(self, trial: TrialContext, login: Login) -> TurnError | None:
        """Why no turn of the trial can be run."""
        by_file = login.variable is None and self.uses_login_file(trial.profile)
        problem = login.missing or (by_file and login_problem(trial, self.spec.home))
        return self.error("auth", problem) if problem else None

    def uses_login_file(self, profile: Profile) -> bool:
        """Whether the user's login file serves where there is no key."""
        return self.spec.home is not None and self.spec.home.login_file is not None

    def environment(self, trial: TrialContext, login: Login) -> dict[str, str]:
        """The whole environment of the process."""
        return trial_environment(trial, self.spec.home, {})

    def engine_home(self, trial: TrialContext, env: Mapping[str, str] | None = None) -> Path:
        """Where this trial's sessions are; it is made, unless its environment `env` is given."""
        env = env or self.environment(trial, self.login(trial))
        return self.spec.home.of(env) if self.spec.home is not None else trial.home

    def command(self, profile: Profile) -> tuple[str, ...]:
        """How the CLI is started."""
        return tuple(profile.command or (self.spec.name,))

    def finish(
        self, result: EngineTurn, turn: TurnRequest, trial: TrialContext, file: Path | None
    ) -> EngineTurn:
        """Adds what only the session's `file` has; None if earlier turns are lost. May block."""
        return result

    async def start(self, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        return await self.turns(self, turn, trial, None).run()

    async def resume(self, session: str, turn: TurnRequest, trial: TrialContext) -> EngineTurn:
        return await self.turns(self, turn, trial, session).run()

    async def check(self, profile: Profile, environment: Mapping[str, str]) -> Availability:
        own = self.key_variables(profile, environment)
        found = find_login(profile, {**environment, **profile.env}, own)
        login = f"variable {found.variable}" if found.variable else None
        if login is None and not self.uses_login_file(profile):
            login = "no key"
        elif login is None and not found.missing and (file := self.login_file(environment)):
            login = f"login file {file}"
        # HOME stays the user's: version managers look their programs up below it.
        env = {**clean_variables(environment), "HOME": environment.get("HOME", str(Path.home()))}
        command = self.command(profile)
        problem, version = self.missing(command[0], env, Path.cwd()), None
        if problem is None:
            problem, version = await self.version(profile, found, env)
        is_there = problem is None
        if is_there and found.missing:
            problem = self.error("auth", found.missing)
        no_login = f"no login was found: {self.spec.login}; --probe tells whether it works"
        notes = () if login or problem else (no_login,)
        return Availability(is_there, command, version, login, problem, notes)

    async def version(
        self, profile: Profile, login: Login, env: Mapping[str, str]
    ) -> tuple[TurnError | None, str | None]:
        """Why the program that is there does not run, and its version."""
        ask = (*self.command(profile), "--version")
        output = await run_quiet(ask, cwd=Path.cwd(), env=env, timeout_seconds=_VERSION_SECONDS)
        if output.exit_code != 0:
            why = output.start_error or output.stderr.strip() or f"exit code {output.exit_code}"
            why = "no answer" if output.timed_out else why
            return self.error("engine_not_usable", f"`--version` does not work: {why}"), None
        found = _VERSION.search(output.stdout)
        return None, found[0] if found else None

    def login_file(self, environment: Mapping[str, str]) -> Path | None:
        return self.spec.home.login_of(environment) if self.spec.home is not None else None

    def skill_directories(self) -> Sequence[str]:
        return self.spec.skill_directories

    def error(self, kind: ErrorKind, what: str, evidence: str = "") -> TurnError:
        """With the advice that its kind has for this CLI. `what` is one clause."""
        advice = ADVICE.get(kind, "").format(login=self.spec.login, install=self.spec.install)
        line = " ".join(what.split())
        message = f"{self.spec.name}: {line if len(line) <= 300 else line[:299] + '…'}"
        return TurnError(
            kind=kind,
            message=f"{message}; {advice}" if advice else message,
            evidence=shortened(evidence),
            retry_after_seconds=parse_retry_after(what),
        )

    def missing(self, program: str, env: Mapping[str, str], cwd: Path) -> TurnError | None:
        """The error if there is no such program, on the PATH or as a path relative to `cwd`."""
        path = os.path.join(cwd, program) if "/" in program else None  # noqa: PTH118
        path = path or shutil.which(program, path=env.get("PATH"))
        is_there = path is not None and os.path.exists(path)  # noqa: PTH110 - done for every turn
        what = f"there is no program `{program}`"
        return None if is_there else self.error("engine_not_found", what)

    def lost(self, session_id: str | None, loss: str, answer: str = "") -> TurnError:
        what = f"the {self.spec.session_word} {session_id} no longer holds its earlier turns"
        if answer.strip():
            loss += f"\nits answer, which is not believed:\n{shortened(answer, 1000)}"
        return self.error("session_lost", what, loss)

    def fingerprint(self, file: Path | None, session_id: str) -> SessionFingerprint | None:
        """What the session holds now; None if it has no file."""
        return fingerprint_of(file, session_id, self.is_user_message)
