"""A run directory as a workspace of Anthropic's skill-creator, for its aggregator and viewer.

    OUT/benchmark.json, benchmark.md
    OUT/eval-N/eval_metadata.json
    OUT/eval-N/CONFIGURATION/run-K/grading.json, timing.json, transcript.md, outputs/…

Several suites or engines get a folder each, as there one workspace is about one skill. Source of
the format: skills/skill-creator/SKILL.md, references/schemas.md and scripts/aggregate_benchmark.py
in https://github.com/anthropics/skills.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from skillup.errors import UsageError
from skillup.importers.write import slug, unique_name
from skillup.reports.benchmark import (
    CONFIGURATIONS,
    Place,
    benchmark,
    counts,
    eval_names,
    expectations,
    markdown_of,
    places,
    run_notes,
    total_tokens,
)
from skillup.reports.markdown import escape
from skillup.reports.text import plain
from skillup.schema.grade import Grade
from skillup.schema.record import FileState, Record, ToolCall, TranscriptItem, TurnRecord
from skillup.store import RunDirectory

# One trial as a run of skill-creator: what it was graded, what it took, what it left.

ReadFile = Callable[[FileState], bytes | None]
_RESERVED = {"metrics.json", "transcript.md", "user_notes.md"}
_RESULT_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Written:
    """What the benchmark says of a run beside its grade."""

    tool_calls: int
    failed_calls: int


def write_run(where: Path, record: Record, grade: Grade, read_file: ReadFile) -> Written:
    """Write `where`, new; raises OSError."""
    outputs = where / "outputs"
    outputs.mkdir(parents=True)
    files = _write_files(outputs, record, read_file)
    transcript = transcript_text(record)
    (where / "transcript.md").write_bytes(transcript.encode("utf-8", "replace"))
    metrics = _metrics(record, files, transcript, with_sizes=total_tokens(grade) is not None)
    _write_json(outputs / "metrics.json", metrics)
    _write_json(where / "timing.json", _timing(record, grade))
    expected = expectations(grade)
    _write_json(
        where / "grading.json",
        {
            "expectations": expected,
            "summary": counts(expected),
            "execution_metrics": {k: v for k, v in metrics.items() if k != "files_created"},
            "timing": {"executor_duration_seconds": round(grade.duration_ms / 1000, 3)},
            "claims": [],
            "user_notes_summary": {
                "uncertainties": run_notes(grade),
                "needs_review": [],
                "workarounds": [],
            },
        },
    )
    return Written(int(metrics["total_tool_calls"]), int(metrics["errors_encountered"]))


def _timing(record: Record, grade: Grade) -> dict[str, Any]:
    used = total_tokens(grade)
    return {
        **({"total_tokens": used} if used is not None else {}),
        "duration_ms": grade.duration_ms,
        "total_duration_seconds": round(grade.duration_ms / 1000, 3),
        "executor_start": record.started_at,
    }


def _metrics(
    record: Record, files: dict[str, int], transcript: str, *, with_sizes: bool
) -> dict[str, Any]:
    """`with_sizes` False: where tokens are not known, the aggregator would take characters."""
    items = list(_items(record))
    calls = Counter(item.tool_call.name for item in items if item.tool_call is not None)
    failed = sum(i.tool_result is not None and i.tool_result.status == "error" for i in items)
    return {
        "tool_calls": dict(calls),
        "total_tool_calls": calls.total(),
        "total_steps": sum(item.type == "message" for item in items),
        "files_created": list(files),
        "errors_encountered": failed,
        **({"output_chars": sum(files.values())} if with_sizes else {}),
        "transcript_chars": len(transcript),
    }


def _write_files(outputs: Path, record: Record, read_file: ReadFile) -> dict[str, int]:
    """The files that the agent made or changed, and its last answer; name → bytes."""
    held = [turn for turn in record.turns if turn.files is not None]
    before = record.initial_files or {}
    after = (held[-1].files if held else None) or {}
    written: dict[str, int] = {}
    for name, state in after.items():
        content = read_file(state) if state != before.get(name) and state.sha256 else None
        if content is not None and _stays_inside(name):
            path = outputs / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written[name] = len(content)
    answer = record.turns[-1].last_answer().response if record.turns else ""
    if answer:
        # The viewer shows files only; and of most skills, what they say is what they do.
        name, number = "answer.md", 1
        while (outputs / name).exists():
            number += 1
            name = f"answer-{number}.md"
        (outputs / name).write_bytes(answer.encode("utf-8", "replace"))
        written[name] = len(answer)
    return written


def _stays_inside(name: str) -> bool:
    """Whether a file of this name can be put there: not above, and not where ours go."""
    path = PurePosixPath(name)
    inner = not path.is_absolute() and ".." not in path.parts and "\0" not in name
    return inner and path.parts[:1] != () and path.parts[0].casefold() not in _RESERVED


def _items(record: Record) -> Iterator[TranscriptItem]:
    for turn in record.turns:
        for message in (turn, *turn.follow_ups):
            yield from message.transcript


def transcript_text(record: Record) -> str:
    """The conversation in Markdown; the viewer takes the prompt from below its first heading."""
    messages = [m for turn in record.turns for m in (turn, *turn.follow_ups)]
    prompt = messages[0].content if messages else ""
    parts = ["## Eval Prompt", _as_said(prompt)]
    for number, message in enumerate(messages, start=1):
        parts += list(_message(message, number, first=number == 1))
    return "\n\n".join(parts) + "\n"


def _message(message: TurnRecord, number: int, *, first: bool) -> Iterator[str]:
    if not first:
        yield f"## Message {number}"
        yield _as_said(message.content)
    if message.transcript:
        yield f"### What the agent did{'' if first else f' ({number})'}"
        yield "\n".join(filter(None, map(_step, message.transcript)))
    yield f"### Answer{'' if first else f' ({number})'}"
    yield _as_said(message.response) or "(none)"


def _step(item: TranscriptItem) -> str:
    if item.tool_call is not None:
        return f"- calls {_code(_call_text(item.tool_call))}"
    if item.tool_result is not None:
        content = item.tool_result.content
        shown = content[:_RESULT_CHARACTERS] + ("…" if len(content) > _RESULT_CHARACTERS else "")
        fenced = "\n".join(f"      {line}" for line in plain(shown).splitlines())
        return f"- {item.tool_result.status}:\n\n{fenced}\n"
    return f"- {item.type}: {_code(item.text)}" if item.text else ""


def _call_text(call: ToolCall) -> str:
    return f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}"


def _code(text: str) -> str:
    """One line that Markdown leaves as it is."""
    flat = " ".join(plain(text).split())
    ticks = "`"
    while ticks in flat:
        ticks += "`"
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"`{flat}`"


def _as_said(text: str) -> str:
    """`text` as people read it, with nothing in it that is Markdown, HTML, a mention or a link.

    What holds any of that stands in a fence. The fence is indented by one space, which Markdown
    takes off its lines again: to the viewer a line that begins with ``##`` ends the prompt.
    """
    lines = plain(text).splitlines()
    if all(escape(line, len(line) + 1) == line for line in lines):
        return "\n".join(lines)
    longest = max(map(len, re.findall("`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join(f" {line}" for line in (fence, *lines, fence))


def _write_json(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written for one suite on one engine."""

    directory: Path
    suite: str
    engine: str
    graded: int
    """Trials with a verdict: only those are runs there."""
    others: int
    """Trials that met an error or were skipped: named in the notes."""


def export_run(run: RunDirectory, out: Path) -> list[Exported]:
    """Write the finished trials of `run` below `out`, which must be new or empty.

    Raises UsageError if it is not or cannot be written, and if no trial of the run has a grade.
    """
    graded = list(_graded(run))
    if not graded:
        raise UsageError(
            f"{run.path}: none of its trials has a grade",
            hint=f"finish it with `skillup run --resume {run.path}`, then export it",
        )
    groups: dict[tuple[str, str], list[tuple[str, Grade]]] = {}
    for job, grade in graded:
        groups.setdefault((grade.suite, grade.engine), []).append((job, grade))
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: already there", hint="choose another --out")
        taken: set[str] = set()
        exported = []
        for (suite, engine), members in groups.items():
            name = unique_name(f"{slug(suite, 'suite')}-{slug(engine, 'engine')}", taken)
            directory = out / name if len(groups) > 1 else out
            exported.append(_export(run, directory, members))
    except OSError as error:
        raise UsageError(
            f"cannot write {error.filename}: {error.strerror}", hint="choose another --out"
        ) from error
    return exported


def _graded(run: RunDirectory) -> Iterator[tuple[str, Grade]]:
    """In the order of the plan."""
    info = run.run_info()
    finished = run.finished_jobs()
    planned = [job for job in info.get("jobs", []) if job in finished]
    for job in dict.fromkeys([*planned, *sorted(finished)]):
        grade = run.read_grade(job)
        if grade is not None:
            yield job, grade


def _export(run: RunDirectory, out: Path, members: Sequence[tuple[str, Grade]]) -> Exported:
    grades = [grade for _, grade in members]
    placed = places(grades)
    names = eval_names(grades)
    eval_digits = len(str(len(names)))
    run_digits = len(str(max(place[2] for place, _ in placed)))
    calls: dict[Place, tuple[int, int]] = {}
    first: Record | None = None
    told: set[int] = set()
    for (job, _), (place, grade) in zip(members, placed, strict=True):
        record = run.read_record(job)
        first = first or record
        number, configuration, repetition = place
        # With leading zeros, so that the order of names is the order of numbers.
        home = out / f"eval-{number:0{eval_digits}}"
        if number not in told:
            told.add(number)
            home.mkdir(parents=True, exist_ok=True)
            _write_json(home / "eval_metadata.json", _metadata(number, names, grade))
        if grade.status in ("PASS", "FAIL"):
            # Of a grade from elsewhere it may be anything, also a way out of the folder.
            ours = configuration in CONFIGURATIONS
            folder = configuration if ours else slug(configuration, "variant")
            where = home / folder / f"run-{repetition:0{run_digits}}"
            written: Written = write_run(where, record, grade, run.blobs.read_state)
            calls[place] = written.tool_calls, written.failed_calls
    skills = [s.name for s in first.skills if s.role == "under_test"] if first else []
    data = benchmark(
        grades,
        timestamp=str(run.run_info().get("started_at", "")),
        skill_name=", ".join(skills),
        skill_path=first.suite_root if first else "",
        model=_model(first),
        tool_calls=calls,
    )
    _write_json(out / "benchmark.json", data)
    (out / "benchmark.md").write_bytes(f"{markdown_of(data)}\n".encode("utf-8", "replace"))
    return Exported(out, grades[0].suite, grades[0].engine, len(calls), len(grades) - len(calls))


def _model(record: Record | None) -> str:
    """What answered, as the engine names it; else what the profile asks for."""
    if record is None:
        return ""
    answered = (turn.model for turn in record.turns if turn.model)
    return next(answered, record.engine.model or "")


def _metadata(number: int, names: Sequence[str], grade: Grade) -> dict[str, Any]:
    prompts = [turn.content for turn in grade.turns]
    if len(prompts) > 1:
        prompts = [f"Turn {n}: {text}" for n, text in enumerate(prompts, start=1)]
    return {
        "eval_id": number,
        "eval_name": names[number - 1],
        "prompt": "\n\n".join(prompts),
        "assertions": [expected["text"] for expected in expectations(grade)],
    }
