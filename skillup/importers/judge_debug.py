"""skill-up's judge-debug files: one execution and its judge in a JSON file, as record and case.

Source of the format: ``skill-up judge debug`` of alibaba/skill-up (`internal/judge`, `Input`), and
its files `examples/judge-debug-*.json` and `judge-inputs/*.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from skillup.checks.scoring import weighted_mean
from skillup.errors import InvalidFilesError, Problem, UsageError
from skillup.judges.agent.answer import AskedCriteria, numbered
from skillup.judges.evaluate import Judgement, Reader
from skillup.judges.usage import UsageTracker
from skillup.load.file_text import read_text
from skillup.load.problems import near_miss, problems_from
from skillup.load.v1alpha1 import merged_case
from skillup.load.yaml_reader import Document
from skillup.schema.case import Case
from skillup.schema.check_specs import ToolKind
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.record import (
    EngineInfo,
    FileState,
    ProcessInfo,
    Record,
    ToolCall,
    ToolResult,
    TranscriptItem,
    TurnError,
    TurnRecord,
)
from skillup.schema.suite import Suite
from skillup.trial.artifacts import keep_references, script_paths
from skillup.workspace import BlobStore, take_snapshot

# The transcript of a judge-debug file as turns.

_KINDS: dict[str, ToolKind] = {
    "shell": "shell", "bash": "shell", "run_command": "shell", "execute_command": "shell",
    "read": "read", "read_file": "read", "write": "write", "write_file": "write",
    "edit": "edit", "edit_file": "edit", "grep": "search", "glob": "search",
    "web_fetch": "web", "web_search": "web", "skill": "skill", "task": "agent",
}  # fmt: skip


def turns_of(data: Mapping[str, Any]) -> list[TurnRecord]:
    """A turn for each number that the entries name, in order; the last answer is the final message.

    Without a transcript it is one turn, which said the final message.
    """
    entries = [entry for entry in data.get("transcript") or () if isinstance(entry, dict)]
    numbers = sorted({_number(entry) for entry in entries}) or [1]
    turns = [
        _turn(place, [entry for entry in entries if _number(entry) == number])
        for place, number in enumerate(numbers, start=1)
    ]
    last = turns[-1].model_copy(update={"response": data["final_message"]})
    return [*turns[:-1], last]


def _number(entry: Mapping[str, Any]) -> int:
    number = entry.get("turn", 1)
    return number if isinstance(number, int) else 1


def _turn(number: int, entries: list[dict[str, Any]]) -> TurnRecord:
    said = [_text(e) for e in entries if e.get("role") == "user"]
    answers = [_text(e) for e in entries if e.get("role") == "assistant"]
    items = [item for entry in entries if (item := _item(entry)) is not None]
    return TurnRecord(
        turn_number=number,
        status="completed",
        content="\n\n".join(said),
        response=answers[-1] if answers else "",
        transcript=items,
    )


def _item(entry: Mapping[str, Any]) -> TranscriptItem | None:
    role = entry.get("role")
    if role == "assistant":
        return TranscriptItem(type="message", text=_text(entry))
    call, result = entry.get("tool_call"), entry.get("tool_result")
    if role == "tool_call" and isinstance(call, dict):
        return TranscriptItem(type="tool_call", tool_call=_call(call))
    if role == "tool_result" and isinstance(result, dict):
        return TranscriptItem(type="tool_result", tool_result=_result(result))
    return None


def _call(call: Mapping[str, Any]) -> ToolCall:
    name, arguments = str(call.get("name", "")), call.get("arguments")
    kind = call.get("kind")
    known: ToolKind = _KINDS.get(name.casefold(), "mcp" if "::" in name else "other")
    return ToolCall(
        id=str(call.get("id", "")),
        name=name,
        kind=kind if kind in get_args(ToolKind) else known,
        arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
    )


def _result(result: Mapping[str, Any]) -> ToolResult:
    status = result.get("status")
    return ToolResult.model_validate(
        {
            "call_id": str(result.get("call_id", "")),
            "status": status if status in ("success", "error") else "unknown",
            "content": str(result.get("content", "")),
        }
    )


def _text(entry: Mapping[str, Any]) -> str:
    content = entry.get("content", "")
    return content if isinstance(content, str) else str(content)


_OF_THE_CASE = ("title", "description", "tags", "tag", "expect", "judge", "judges", "assertions")
_OF_THE_RECORD = frozenset(
    {"case_id", "transcript", "final_message", "exit_code", "workspace_path", "workspace_diff"}
    | {"generated_files", "turns_executed", "turns_total", "skill_dir", "artifact_dir"}
    | {"mock_results", "session_result"}
)
_OF_WEIGHT = (*_OF_THE_CASE, "transcript", "workspace_path", "skill_dir", "mock_results")
"""What must not get lost because it is misspelt."""
_PLACEHOLDERS = ("__WORKSPACE__", "__SKILL_DIR__")
INPUT_PROFILE = "judge-input"
"""Stands where a record names its engine's profile: the file does not tell which it was."""


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """What a file holds."""

    case: Case
    record: Record
    mock_results: tuple[dict[str, Any], ...] | None = None
    """What the agent judge is taken to have said; None: it has to be asked."""
    notes: tuple[str, ...] = ()
    """What could not be taken from the file."""


def is_judge_input(path: Path) -> bool:
    """Whether the JSON file is such an execution, and no record of ours."""
    try:
        data = json.loads(read_text(path))
    except (InvalidFilesError, ValueError):
        return False
    return isinstance(data, dict) and "schema_version" not in data and "final_message" in data


@dataclass(frozen=True, slots=True)
class InputPlaces:
    """Folders that stand for those in the file; None: as the file says."""

    workspace: Path | None = None
    skill_dir: Path | None = None

    def filled(self, data: dict[str, Any]) -> dict[str, Any]:
        """`data` with these folders, also wherever a text has a placeholder for one."""
        folders = zip(_PLACEHOLDERS, (self.workspace, self.skill_dir), strict=True)
        known = {name: str(folder.absolute()) for name, folder in folders if folder is not None}
        filled: dict[str, Any] = _filled(data, known)
        own = {"workspace_path": self.workspace, "skill_dir": self.skill_dir}
        return filled | {key: str(path.absolute()) for key, path in own.items() if path is not None}


def read_judge_input(
    path: Path,
    blobs: BlobStore,
    places: InputPlaces = InputPlaces(),
) -> JudgeInput:
    """The execution in the file; the contents of its workspace go into `blobs`.

    Raises UsageError for what is no such file, InvalidFilesError for a case that does not validate.
    """
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("final_message"), str):
        hint = "it needs `final_message`, `judge` and the like, as skill-up's judge-debug files"
        raise UsageError(f"{path}: no judge input", hint=hint)
    data = places.filled(data)
    turns = turns_of(data)
    notes = list(_without_unknown_places(data))
    notes += _unknown_keys(data, path)
    case = _case(data, turns, path)
    root = _skill_dir(data, path)
    files = _files(data, path, blobs)
    mocked = data.get("mock_results")
    told = tuple(mocked) if isinstance(mocked, list) and mocked else None
    if files is None and _looks_around(case):
        files = {}
        if told is None:
            notes.append("it names no workspace: scripts and agents judge in an empty one")
    record = _record(data, turns, case, root, files, blobs)
    return JudgeInput(case, record, told, tuple(notes))


def _looks_around(case: Case) -> bool:
    """Somebody judges it who starts in the workspace."""
    return bool(script_paths(case)) or any(j.type == "agent_judge" for j in case.all_judges())


def _filled(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, folder in known.items():
            value = value.replace(name, folder)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, known) for key, item in value.items()}
    return [_filled(item, known) for item in value] if isinstance(value, list) else value


def _without_unknown_places(data: dict[str, Any]) -> tuple[str, ...]:
    """Takes out what refers to a folder that the file only has a placeholder for."""
    gate = data.get("expect")
    if data.get("skill_dir") != "__SKILL_DIR__" or not isinstance(gate, dict):
        return ()
    golden = gate.pop("golden_file", None)
    if golden is None:
        return ()
    where = "its `skill_dir` is a placeholder; give --skill-dir to have it compared"
    return (f"`expect.golden_file: {golden}` was left out: {where}",)


def _unknown_keys(data: dict[str, Any], path: Path) -> list[str]:
    """A note for each key that says nothing here. Raises InvalidFilesError for misspelt ones."""
    notes, problems = [], []
    for key in sorted(set(data) - set(_OF_THE_CASE) - _OF_THE_RECORD):
        meant = near_miss(key, _OF_WEIGHT)
        if meant is None:
            notes.append(f"`{key}` was left out: it has no meaning in a judge-debug file")
            continue
        fix = f"did you mean `{meant}`?"
        problems.append(Problem(path, 1, 1, key, "unknown key", fix))
    if problems:
        raise InvalidFilesError(problems)
    return notes


def _case(data: dict[str, Any], turns: list[TurnRecord], path: Path) -> Case:
    """The case: its judge and its gate; the messages are those of the transcript."""
    said = [turn.content or "(no message)" for turn in turns]
    # What Go writes for a field that is not set says nothing.
    written = {key: data[key] for key in _OF_THE_CASE if data.get(key) not in (None, "", {}, [])}
    written["id"] = data.get("case_id") or path.stem
    written["input"] = {"prompt": said[0]} if len(said) == 1 else {"turns": said}
    document = Document(path, "", written)
    try:
        case = Case.model_validate(written)
    except ValidationError as error:
        raise InvalidFilesError(problems_from(error, document, Case)) from None
    theirs = merged_case(case, Suite(), default_id=path.stem)
    return theirs.model_copy(update={"judge": None, "judges": theirs.all_judges() or None})


def _record(
    data: dict[str, Any],
    turns: list[TurnRecord],
    case: Case,
    root: Path,
    files: dict[str, FileState] | None,
    blobs: BlobStore,
) -> Record:
    process = ProcessInfo(exit_code=data.get("exit_code", 0))
    ended = [turn.model_copy(update={"files": files, "process": process}) for turn in turns]
    return Record(
        run_id="judge-input",
        suite=root.name,
        suite_root=str(root),
        case_id=case.id,
        case=case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        engine=EngineInfo(profile=INPUT_PROFILE, adapter=INPUT_PROFILE),
        started_at="",
        duration_ms=0,
        references=keep_references(case, root, blobs),
        turns=ended,
    )


def _files(data: dict[str, Any], path: Path, blobs: BlobStore) -> dict[str, FileState] | None:
    """The workspace after the last turn; None if there is none to look at."""
    given = data.get("workspace_path")
    if not isinstance(given, str) or not given:
        return None
    beside = path.parent.parent / "workspace"
    root = beside if given in _PLACEHOLDERS else path.parent / given
    return dict(take_snapshot(root, blobs).files) if root.is_dir() else {}


def _skill_dir(data: dict[str, Any], path: Path) -> Path:
    """What the judge's own paths start from: as given, else the folder that holds `evals/`."""
    given = data.get("skill_dir")
    if isinstance(given, str) and given and given not in _PLACEHOLDERS:
        return (path.parent / given).resolve()
    above = path.resolve().parents
    return next((folder for folder in above if (folder / "evals").is_dir()), Path.cwd())


# An agent judge whose answers stand in the file: `mock_results` of a judge-debug file.


class MockedJudge:
    """A `Reader`: answers for agent judges, and passes everything else on to `other`."""

    def __init__(self, results: Sequence[Mapping[str, Any]], other: Reader) -> None:
        self._results = results
        self._other = other

    def problem(self, case: Case) -> TurnError | None:
        """None: agent judges need nobody here."""
        kept = [judge for judge in case.all_judges() if judge.type != "agent_judge"]
        return self._other.problem(case.model_copy(update={"judge": None, "judges": kept or None}))

    async def read(self, inquiry: Judgement, ledger: UsageTracker) -> Sequence[CheckResult]:
        """What the file says for the judge's criteria."""
        if inquiry.judge is None or inquiry.judge.type != "agent_judge":
            return await self._other.read(inquiry, ledger)
        return [mocked_result(inquiry.judge, self._results)]


def mocked_result(judge: JudgeConfig, results: Sequence[Mapping[str, Any]]) -> CheckResult:
    """The judge's result; a criterion that the file says nothing of makes it an error."""
    children: list[CheckResult] = []
    silent: list[str] = []
    for place, asked in enumerate(numbered(judge.criteria)):
        said = _said(asked, place, results)
        if said is None:
            silent.append(asked.id)
        else:
            children.append(_child(asked, said))
    score = round(weighted_mean(children), 6) if children else 0.0
    threshold = 1.0 if judge.pass_threshold is None else judge.pass_threshold
    met = sum(child.passed for child in children)
    refused = any(child.required and not child.passed for child in children)
    unmet = next((child for child in children if not child.passed), None)
    why = "" if unmet is None else f"; {unmet.name}: {unmet.found}".removesuffix(": ")
    error = f"`mock_results` has nothing for {', '.join(silent)}" if silent else None
    return CheckResult(
        name=judge.id or "agent_judge",
        kind="agent_judge",
        passed=error is None and score >= threshold and not refused,
        score=score,
        role="judge",
        found=f"{met} of {len(children)} criteria met, score {score:.2f} of {threshold:.2f}{why}",
        notes=["answered by the file's `mock_results`: no agent was asked"],
        error=error,
        children=children,
    )


def _said(
    asked: AskedCriteria, place: int, results: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """By id; by its text, as older files have it; else by place, where no entry names anything."""
    for said in results:
        if said.get("criterion_id") == asked.id or said.get("criterion") == asked.criterion.outcome:
            return said
    named = any("criterion_id" in said or "criterion" in said for said in results)
    return results[place] if not named and place < len(results) else None


def _child(asked: AskedCriteria, said: Mapping[str, Any]) -> CheckResult:
    passed = said.get("passed") is True
    evidence = said.get("evidence", said.get("reason", ""))
    failures = said.get("failures") or []
    return CheckResult(
        name=asked.criterion.outcome,
        kind="criterion",
        passed=passed,
        score=float(passed),
        weight=asked.criterion.weight,
        required=asked.criterion.required,
        role="judge",
        expected=asked.criterion.outcome,
        found="; ".join(map(str, failures)) or _joined(evidence),
        excerpt=_joined(evidence),
    )


def _joined(evidence: Any) -> str:
    return "; ".join(map(str, evidence)) if isinstance(evidence, list) else str(evidence)
