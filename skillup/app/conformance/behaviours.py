"""What an engine does at a scripted model: one row for each behaviour.

Most behaviours are cases of the suite beside this; the rest is read from their records and from
what the model was asked, or tried with the engine itself.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, rmtree
from typing import Literal

import anyio
import psutil

from skillup.app.conformance.model import INPUT, OUTPUT, ConformanceModel
from skillup.app.planning import RunRequest
from skillup.app.run_session import RunSession
from skillup.dataclass import frozen
from skillup.engines.base import Engine, NoStreams, SessionResumer, TrialContext, TurnRequest
from skillup.engines.registry import engine_of
from skillup.errors import SkillupError
from skillup.judges.session import context_in
from skillup.load.discover import workspace_root
from skillup.load.profiles import load_profile
from skillup.load.suites import load_paths
from skillup.plan import Job, Selection, make_plan
from skillup.process.tree import TRIAL_VARIABLE, has_assignment, new_marker
from skillup.reports.terminal.layout import Part, make_console, print_line, print_table
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.text import one_line
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from skillup.schema.record import Record, TurnRecord

SUITE = Path(__file__).with_name("suite")
_KEY = "SKILLUP_CONFORMANCE_KEY"
_NO_PORT = "http://127.0.0.1:9"
_DECOY = "decoy-text-of-somebody-else"
_INSTRUCTIONS = "AGENTS.md CLAUDE.md GEMINI.md QWEN.md .goosehints .agents/skills/decoy/SKILL.md"
_AT_HOME = """
    .claude/CLAUDE.md .claude/skills/decoy/SKILL.md .codex/AGENTS.md .gemini/GEMINI.md
    .qwen/QWEN.md .config/opencode/AGENTS.md .copilot/copilot-instructions.md
    .config/goose/.goosehints .pi/agent/AGENTS.md
"""
_DECOYS = {
    "home": "Nothing comes from the user's home",
    "above": "Nothing comes from folders above the workspace",
}
_TURN_SECONDS = 20.0  # A first turn that takes longer lengthens all limits
_LIMIT = re.compile(r"(timeout_seconds: )(\d+)")
_NOT_OFFERED = frozenset({"unsupported", "no_resume"})
Verdict = Literal["yes", "no", "–"]
_STYLE: dict[Verdict, str] = {"yes": "green", "no": "red", "–": "dim"}


@frozen
class Behaviour:
    """A row: `yes`, `no` (and why), or `–`: the engine says that it cannot."""

    name: str
    verdict: Verdict
    why: str = ""


def behaviours(profile: Profile, parallel: int = 8, *, mixed: bool = True) -> list[Behaviour]:
    """All rows, in order; not `mixed`: without eight sessions at once, a third of the time.

    Changes this process's HOME and TMPDIR while it runs. Raises SkillupError without the CLI.
    """
    here = anyio.run(engine_of(profile).check, profile, os.environ)
    if not here.found:
        raise SkillupError(here.problem.message if here.problem else f"no {profile.engine} here")
    with tempfile.TemporaryDirectory(prefix="skillup-conformance-") as folder:
        root = Path(folder).resolve()
        with ConformanceModel() as model, _decoys(root):
            key, name = profile.api_key_env or _KEY, profile.model or "conformance-model"
            own = {"model": name, "retries": 1, "base_url": model.url, "api_key_env": key}
            main = profile.model_copy(update=own)
            nowhere = main.model_copy(update={"base_url": _NO_PORT, "gateway": "off"})
            os.environ[key] = "sk-conformance-0123456789"
            began = time.monotonic()
            why = _tried(_long_message, main, root, model)
            suite = _suite(root / "suite", max(1.0, (time.monotonic() - began) / _TURN_SECONDS))
            done: dict[str, tuple[Job, Record, Grade]] = {}
            tags: tuple[str, ...] = ("main", "mixed") if mixed else ("main",)
            runs = [(tags, main), (("refused",), nowhere)]
            modes = ("read_only", "edits")
            runs += [((mode,), main.model_copy(update={"permission": mode})) for mode in modes]
            for some, one in runs:
                done |= _run(suite, some, one, root / some[0], parallel)
            rows = [*_of_cases(done), _row("A long message arrives whole", why)]
            rows += _of_records(done, model)
            rows += [_row(n, _tried(one, main, root, model)) for n, one in _ATTEMPTS.items()]
            for place, title in _DECOYS.items():
                leaked = any(f"{_DECOY}-{place}" in str(asked.body) for asked in model.requests)
                why = "requests hold a decoy's text" if leaked else None
                why = why if model.requests else "the model was never asked"
                rows.append(_row(title, why))
    return rows


def conformance(names: Sequence[str], say: Callable[[str], None]) -> dict[str, list[Behaviour]]:
    """The rows of each profile. Raises UsageError for a name that is none here."""
    root, found = workspace_root(Path.cwd()), {}
    for name in names:
        profile = load_profile(name, root, os.environ)
        say(f"{profile.name}: about 50 conversations with a scripted model, of some minutes …")
        found[profile.name] = behaviours(profile)
    return found


def print_conformance(found: Mapping[str, Sequence[Behaviour]]) -> None:
    """A row for each behaviour, a column for each profile; then why not."""
    console = make_console(sys.stdout)
    names = [row.name for row in next(iter(found.values()))]
    cells: list[Sequence[Part]] = [
        [name, *((rows[number].verdict, _STYLE[rows[number].verdict]) for rows in found.values())]
        for number, name in enumerate(names)
    ]
    print_table(console, cells, ("behaviour", *found), align="l" * (1 + len(found)))
    for profile, rows in found.items():
        for row in rows:
            if row.why:
                text = f"{profile}: {row.name}: {one_line(row.why, 300)}"
                print_line(console, text, style="dim", whole=True)


def _row(name: str, why: str | int | None) -> Behaviour:
    if not why:
        return Behaviour(name, "yes")
    kind = str(why).partition(":")[0]
    return Behaviour(name, "–" if kind in _NOT_OFFERED else "no", str(why))


@contextmanager
def _decoys(root: Path) -> Iterator[None]:
    """A home, and folders above the workspaces, that are somebody else's."""
    home, above = root / "decoy-home", root / "above"
    names = {above / name: "above" for name in _INSTRUCTIONS.split()}
    names |= {home / name: "home" for name in f"{_INSTRUCTIONS} {_AT_HOME}".split()}
    for path, place in names.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"{_DECOY}-{place}"
        front = f"---\nname: decoy\ndescription: {text}\n---\n" * (path.name == "SKILL.md")
        path.write_text(f"{front}Say {text}.\n", "utf-8")
    before = dict(os.environ)
    os.environ |= {"HOME": str(home), "TMPDIR": str(above)}
    tempfile.tempdir = None  # it was kept
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        tempfile.tempdir = None


def _suite(copy: Path, slower: float) -> Path:
    """The suite, with the time limits that it needs where all is so many times `slower`."""
    copytree(SUITE, copy)
    for file in copy.rglob("*.yaml"):
        text = _LIMIT.sub(lambda of: f"{of[1]}{float(of[2]) * slower:g}", file.read_text("utf-8"))
        file.write_text(text, "utf-8")
    return copy


def _run(
    suite: Path, tags: tuple[str, ...], profile: Profile, out: Path, parallel: int
) -> dict[str, tuple[Job, Record, Grade]]:
    """What the cases of those tags came to."""
    loaded = load_paths([suite])
    loaded.or_raise()
    profiles = {str(suite.path): [profile] for suite in loaded.suites}
    plan = make_plan(loaded.suites, profiles, Selection(tags=tags))
    request = RunRequest(
        paths=(str(suite),), parallel=parallel, directory=str(out.parent), rate_limit_wait=0
    )
    jobs, done = {job.id: job for job in plan.jobs}, {}
    with RunSession(request, plan, path=out) as session:
        anyio.run(session.run, PlainReporter(plan, make_console, quiet=True))
        for found in session.directory.finished():
            if (grade := found.grade()) is not None:
                job = jobs[found.job_id]
                done[job.case] = job, found.record(), grade
    return done


def _of_cases(done: Mapping[str, tuple[Job, Record, Grade]]) -> list[Behaviour]:
    """One row for all cases with the same title: the worst of them."""
    worst: dict[str, str | None] = {}
    for job, _, grade in sorted(done.values(), key=lambda each: each[0].loaded.case.title or ""):
        case = job.loaded.case
        wanted = [tag.partition("=")[2] for tag in case.tags if tag.startswith("error=")]
        kind = (grade.error or {}).get("kind")
        right = kind in wanted if wanted else grade.status == "PASS"
        why = None if right else f"{kind or grade.status}: {grade.reason}"
        title = case.title or job.case
        worst[title] = worst.get(title) or why
    return [_row(title, why) for title, why in worst.items()]


def _of_records(
    done: Mapping[str, tuple[Job, Record, Grade]], model: ConformanceModel
) -> list[Behaviour]:
    found = [record.turns for job, record, _ in done.values() if job.case.endswith("three-turns")]
    turns = [turn for turns in found for turn in turns]
    all_turns = [turn for _, record, _ in done.values() for turn in record.turns]
    resumed = [t for t in all_turns if t.turn_number > 1 and t.status == "completed"]
    unproven = [
        turn.turn_number
        for turn in resumed
        if turn.session_verified is not True or (turn.traffic and turn.traffic.continued is False)
    ]
    ended = [t for t in all_turns if t.process is None or t.process.ended_by != "timeout"]
    unknown = sum(turn.unknown_events + turn.unread_lines for turn in ended)
    asked = [str(a.body) for a in model.requests if a.tools and "word-one" in str(a.body)]
    listed = any("bowing thrice" in str(a.body) for a in model.requests)
    system = asked and all("the-system-text" in body for body in asked)
    tries = sum(asked.step == ("fail", "500") for asked in model.requests)
    many = None if 0 < tries <= 2 else f"with 1 the model is asked {tries} times"
    return [
        _row("Every resumed turn is proved", str(unproven) if unproven or not resumed else None),
        _row("The usage of a turn is its own", _usage_problem(turns)),
        _row("Requests of its own are not counted", _traffic_problem(turns)),
        _row("A skill is offered to the model", None if listed else "no request has it"),
        _row("The system text is in every request", None if system else "it is not"),
        _row("`retries` holds", many),
        _row("Every event is understood", f"{unknown} are not" if unknown else None),
    ]


def _usage_problem(turns: Sequence[TurnRecord]) -> str | None:
    for turn, requests in zip(turns, (2, 2, 1), strict=False):
        used = turn.usage
        counted = used and (used.input_tokens, used.output_tokens)
        if counted != (INPUT * requests, OUTPUT * requests):
            return f"turn {turn.turn_number}: {counted} tokens in {requests} requests"
    return None if turns else "no turn was run"


def _traffic_problem(turns: Sequence[TurnRecord]) -> str | None:
    counted = [turn.traffic.requests if turn.traffic else None for turn in turns]
    return None if counted == [2, 2, 1] else f"requests of the three turns: {counted}"


# What no case can say: engines are asked themselves.

Attempt = Callable[[Engine, TrialContext, ConformanceModel], Awaitable[str | None]]  # Why not


def _tried(attempt: Attempt, profile: Profile, root: Path, model: ConformanceModel) -> str | None:
    own = {"marker": new_marker(), "session_id": str(uuid.uuid4()), "streams": NoStreams()}
    trial = context_in(root / uuid.uuid4().hex, profile, dict(os.environ), **own)
    return anyio.run(attempt, engine_of(profile), trial, model)


async def _long_message(engine: Engine, trial: TrialContext, model: ConformanceModel) -> str | None:
    """Longer than one argument of a program may be."""
    text = 'long "text" \\ ünï\n\U0001f600 ' * 6_000 + "end-of-it"
    turn = TurnRequest(1, f"{text}\nmodel> say: Read.")
    error = (await engine.start(turn, trial)).error
    if error is not None:
        return f"{error.kind}: {error.message}"
    told = (message for asked in model.requests for _, message in asked.messages)
    return None if any(text in message for message in told) else "no request has it"


async def _unknown_session(engine: Engine, trial: TrialContext, _: object) -> str | None:
    if not isinstance(engine, SessionResumer):
        return "no_resume: it cannot resume"
    turn = TurnRequest(2, "Hello.\nmodel> say: Hello.", timeout_seconds=60)
    error = (await engine.resume(str(uuid.uuid4()), turn, trial)).error
    kind = error.kind if error is not None else "an answer"
    return None if kind in ("session_lost", "session_mismatch") else f"{kind}: {error}"


async def _lost_session(engine: Engine, trial: TrialContext, model: ConformanceModel) -> str | None:
    if not isinstance(engine, SessionResumer):
        return "no_resume: it cannot resume"
    first = await engine.start(TurnRequest(1, "Hello.\nmodel> say: Hello."), trial)
    if first.error is not None or first.session is None:
        return f"the first turn: {first.error}"
    rmtree(trial.home)
    asked = len(model.requests)
    turn = TurnRequest(2, "And?\nmodel> say: Yes.", previous=first.fingerprint)
    error = (await engine.resume(first.session, turn, trial)).error
    if error is None or error.kind != "session_lost":
        return f"{error}"
    return None if len(model.requests) == asked else "the model was asked all the same"


async def _cancelled(engine: Engine, trial: TrialContext, model: ConformanceModel) -> str | None:
    asked = len(model.requests)
    turn = TurnRequest(1, "Wait.\nmodel> shell: sleep 300\nmodel> say: Waited.")
    async with anyio.create_task_group() as group:
        group.start_soon(engine.start, turn, trial)
        for _ in range(600):
            await anyio.sleep(0.1 if len(model.requests) == asked else 0)
        await anyio.sleep(1)  # The command runs
        group.cancel_scope.cancel()
    left = [pid for pid in psutil.pids() if has_assignment(pid, f"{TRIAL_VARIABLE}={trial.marker}")]
    return f"processes are left: {left}" if left else None


_ATTEMPTS: dict[str, Attempt] = {
    "An unknown session is refused": _unknown_session,
    "A session that lost its turns is `session_lost`": _lost_session,
    "A cancelled turn leaves no process": _cancelled,
}
