"""What programs that judge are given of a record: transcript, changes, a copy of the workspace."""

from __future__ import annotations

import json
import os
import posixpath
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from skillup.checks.context import CheckContext, ReadFile, listed
from skillup.checks.evaluate import resolve
from skillup.checks.registry import NO_SNAPSHOT
from skillup.dataclass import frozen, mutable
from skillup.engines.events import shortened
from skillup.judges.material import Exchange, Part, exchanges_of, harmless, setting_of
from skillup.judges.models import Models
from skillup.schema.judge import ContextLimits, JudgeContext, Showing
from skillup.schema.profile import Profile
from skillup.schema.record import FileState, HistoryItem, Record, TranscriptItem, TurnRecord
from skillup.trial.history import as_turns
from skillup.workspace.disk import list_tree, path_problem, stays_inside
from skillup.workspace.snapshot import file_diffs, printable

Files = Mapping[str, FileState]


@frozen
class JudgePlace:
    models: Models  # Environment, secrets, rate limiter and kept answers are its
    scratch: Path  # An empty directory of this judging alone; whoever made it removes it
    profiles: Callable[[str | None], Profile]  # By name; None: the record's own. Raises UsageError
    suite_root: Path  # What the paths of the case are relative to; it need not be there any more

    def new_directory(self, prefix: str) -> Path:
        self.scratch.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=self.scratch)).resolve()


@frozen
class JudgedPart:
    """What a judge is asked about: one turn, or the conversation."""

    record: Record
    label: str  # ``turn 2`` or ``conversation``
    number: int | None  # The turn's; None: the conversation
    read_file: ReadFile
    exchanges: tuple[Exchange, ...] = ()  # Up to the point in question, in order
    files: Files = field(default_factory=dict)  # The workspace at that point
    notes: tuple[str, ...] = ()
    nothing: dict[str, Any] | None = None  # What the result says where nothing is there

    @property
    def before(self) -> Files:
        return self.record.initial_files or {}

    @property
    def turns(self) -> list[TurnRecord]:
        return [exchange.step for exchange in self.exchanges if exchange.step is not None]

    @property
    def last(self) -> TurnRecord:
        return self.turns[-1]


def judged_part(context: CheckContext) -> JudgedPart:
    """What `context` is about: its turn with all that came before it, or the conversation."""
    scope, turn = resolve(context, None), context.turn
    number = None if turn is None else turn.turn_number
    part = JudgedPart(context.record, scope.label, number, context.read_file)
    if scope.problem is not None:
        return replace(part, nothing={"found": scope.problem, "assertable": False})
    part = replace(part, exchanges=tuple(exchanges_of(context.record, turn)))
    if part.last.files is not None:
        return replace(part, files=part.last.files)
    if all(step.source == "history" for step in part.turns):
        note = "the conversation took place elsewhere: it has no workspace, an empty one was shown"
        return replace(part, notes=(note,))
    return replace(part, nothing={"error": NO_SNAPSHOT})


def diff_lines(before: Files, after: Files, read_file: ReadFile) -> Iterator[str]:
    """A unified diff, line by line without newlines; binary and large files are only named."""
    paths = sorted({*before, *after})
    changed = [path for path in paths if before.get(path) != after.get(path)]
    return file_diffs(changed, before, after, read_file)


def file_list(before: Files, after: Files) -> str:
    """A line for each file, deleted ones too: what happened to it, its size, its path."""
    lines = []
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        what = "deleted" if new is None else "added" if old is None else "modified"
        what = "unchanged" if old == new else what
        state = new or old
        assert state is not None
        about = "" if state.kept else " (too large to be kept)"
        about = about if state.link is None else f" -> {state.link}"
        lines.append(f"{what:<10}{state.size:>10}  {printable(path)}{about}")
    return "\n".join(lines) + "\n" if lines else "the workspace has no files\n"


# The conversation: as texts, as JSON in skill-up's form for programs, as Markdown for readers.


def texts_of(judged: JudgedPart) -> Iterator[Part]:
    """All that was said and done, also as it stands within arguments; each with its speaker."""
    for exchange in judged.exchanges:
        yield from exchange.labelled()
        for item in exchange.step.transcript if exchange.step is not None else ():
            if item.tool_call is not None:
                values = "\n".join(str(value) for value in item.tool_call.arguments.values())
                yield Part("call", f"{exchange.label} · {item.tool_call.name}", values)


def as_json(turns: Iterable[TurnRecord], history: Sequence[HistoryItem] = ()) -> str:
    """A list of entries (docs/judges.md); messages placed in the session before have turn 0."""
    earlier = (entry for turn in as_turns(history) for entry in _entries(turn, 0))
    entries = [*earlier, *(entry for turn in turns for entry in _entries(turn, turn.turn_number))]
    return json.dumps(entries, ensure_ascii=False, indent=1)


def as_markdown(exchanges: Sequence[Exchange]) -> list[str]:
    """A piece for each exchange; texts are quoted (`> `), and cannot be taken for headings."""
    pieces = []
    for exchange in exchanges:
        lines = [f"# {exchange.label}\n"]
        for part in exchange.parts:
            quoted = "\n".join(f"> {line}" for line in part.text.split("\n"))
            lines.append(f"## {part.label}\n\n{quoted}\n")
        pieces.append("\n".join(lines))
    return pieces


def _entries(turn: TurnRecord, number: int) -> Iterator[dict[str, Any]]:
    items = turn.transcript
    # The answer too, where the engine reported nothing else.
    if turn.response and not any(item.text == turn.response for item in items):
        items = [*items, TranscriptItem(type="message", text=turn.response)]
    if turn.content:
        yield {"role": "user", "turn": number, "content": turn.content}
    for item in items:
        role, told = "assistant" if item.type == "message" else item.type, "content"
        content: Any = item.text or ""
        if (tool := item.tool_call or item.tool_result) is not None:
            role = told = "tool_call" if item.tool_call is not None else "tool_result"
            content = tool.model_dump(mode="json")
        entry = {"role": role, "turn": number, told: content}
        if item.question is not None:
            entry["question"] = item.question.model_dump()
        yield entry | ({"agent": item.agent} if item.agent else {})


# The workspace as it was after a turn, made anew from what the record has kept.


class CannotJudgeError(Exception):
    """There is no verdict; the message says why and what to do."""


TOO_LARGE, LED_OUT = "too large to be kept", "links out of the workspace"


def copy_of(files: Files, read_file: ReadFile, destination: Path) -> dict[str, list[str]]:
    """Writes `files` to the new directory `destination`: contents, executable bits, links.

    Returns the paths that it lacks, by why: files TOO_LARGE, links that LED_OUT. Raises
    CannotJudgeError if a content that should be stored is not, OSError where the disk does.
    """
    destination.mkdir(parents=True)
    lacks: dict[str, list[str]] = {TOO_LARGE: [], LED_OUT: []}
    # Links last: no file may be written through one.
    for path, state in sorted(files.items(), key=lambda file: file[1].link is not None):
        problem = path_problem(path)
        if problem is not None:
            raise CannotJudgeError(f"{path!r} is no path of a workspace: {problem}")
        target = destination / path
        if state.link is not None:
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), state.link))
            if state.link.startswith("/") or inside == ".." or inside.startswith("../"):
                lacks[LED_OUT].append(path)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            # Not through Path: it would change the target's spelling (`./a` to `a`).
            os.symlink(state.link, target)  # noqa: PTH211
            continue
        if not state.kept or state.sha256 is None:
            lacks[TOO_LARGE].append(path)
            continue
        content = read_file(state)
        if content is None:
            raise CannotJudgeError(f"the stored content of {path} is missing from the run")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if state.executable else 0o644)
    for path in [path for path, state in files.items() if state.link is not None]:
        # One may lead out by way of another.
        if path not in lacks[LED_OUT] and not stays_inside(destination, path):
            lacks[LED_OUT].append(path)
            (destination / path).unlink()
    return lacks


def notes_on(lacks: Mapping[str, Sequence[str]]) -> list[str]:
    """What a copy lacks, for the reader of a grade."""
    return [f"not shown, {why}: {listed(paths)}" for why, paths in lacks.items() if paths]


def make_read_only(root: Path) -> None:
    paths = [root / e.path for e in list_tree(root) if e.kind in ("file", "directory")]
    for path in [*paths, root]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


# Files beside the copy of the workspace, for agents.


@mutable
class Materials:
    """The files as they were written, and what goes into the question."""

    directory: Path = Path()
    limits: ContextLimits = field(default_factory=ContextLimits)
    mask: Callable[[str], str] = str
    files: list[tuple[str, str]] = field(default_factory=list)  # Path, and what it is
    inline: list[tuple[str, str]] = field(default_factory=list)  # What it is, and the text
    notes: list[str] = field(default_factory=list)  # What was shortened

    def put(self, name: str, what: str, text: str, how: Showing = "file_ref") -> None:
        """A file, and in the question too if that is asked for."""
        if how == "omit":
            return
        text = harmless(self.mask(text))
        shown = shortened(text, self.limits.max_file_bytes)
        file = self.directory / name
        file.write_text(shown, "utf-8", errors="backslashreplace", newline="")
        if shown != text.strip():
            self.notes.append(f"the judge was shown {name} shortened")
        self.files.append((f"judge/{name}", what))
        if how != "file_ref":
            self.show(what, text)

    def show(self, what: str, text: str) -> None:
        """In the question; of a long one its beginning and end."""
        text = shortened(harmless(self.mask(text)), self.limits.max_bytes)
        self.inline.append((what, text))


def write_materials(
    directory: Path, judged: JudgedPart, context: JudgeContext, mask: Callable[[str], str]
) -> Materials:
    """Writes the files into the new `directory`. Raises CannotJudgeError, OSError."""
    directory.mkdir()
    limits, record, before, files = context.limits, judged.record, judged.before, judged.files
    materials = Materials(directory, limits, mask)
    turns = as_markdown(judged.exchanges)
    most = limits.transcript_max_turns
    if most is not None and len(turns) > most:
        turns = [f"[… the first {len(turns) - most} turns left out …]\n", *turns[-most:]]
    talk = "\n".join(turns)
    materials.put("transcript.md", "all that was said and done", talk, context.shows("transcript"))
    for part in setting_of(record, record.variables_after(judged.number)):
        materials.show(part.label, part.text)
    how = context.shows("workspace_diff")
    if how != "omit":
        lines = list(diff_lines(before, files, judged.read_file)) or ["nothing changed"]
        most = limits.workspace_diff_max_lines
        if most is not None and len(lines) > most:
            lines = [*lines[:most], f"[… {len(lines) - most} lines left out …]"]
        diff = "\n".join(lines) + "\n"
        materials.put("changes.diff", "the workspace's changes, as a unified diff", diff, how)
    if context.generated_files != "omit":
        materials.put("files.txt", "every file of the workspace", file_list(before, files))
    answer, how = judged.last.response, context.shows("final_message")
    materials.put("final_message.txt", "the agent's final message", answer, how)
    for item in context.attachments:
        name = Path(item.path).name
        kept = record.references.get(item.path)
        content = judged.read_file(kept) if kept is not None else None
        if content is None:
            raise CannotJudgeError(f"there is no attachment {item.path} with the record")
        place = directory / "attachments" / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
        materials.files.append((f"judge/attachments/{name}", f"attached: {item.label or name}"))
    return materials
