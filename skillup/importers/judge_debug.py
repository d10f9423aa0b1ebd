"""skill-up's judge-debug files: one execution and its judge in a JSON file, as record and case.

Source of the format: ``skill-up judge debug`` of alibaba/skill-up (`internal/judge`, `Input`), and
its files `examples/judge-debug-*.json` and `judge-inputs/*.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

from pydantic import ValidationError

from skillup.dataclass import frozen
from skillup.errors import InvalidFilesError, Problem, UsageError, near_miss
from skillup.judges.agent import numbered, result_of_agent
from skillup.judges.evaluate import JudgeRequest, UsageTracker, blank_result
from skillup.judges.voting import Vote
from skillup.load.compat import read_case
from skillup.load.yaml_reader import Document, problems_from, read_text
from skillup.schema.case import Case
from skillup.schema.checks import ToolKind
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
    TurnRecord,
)
from skillup.schema.suite import Suite
from skillup.trial.artifacts import keep_references, script_paths
from skillup.workspace.snapshot import BlobStore, take_snapshot

if TYPE_CHECKING:
    from skillup.judges.router import JudgeRouter

_KINDS: dict[str, ToolKind] = {
    "shell": "shell", "bash": "shell", "run_command": "shell", "execute_command": "shell",
    "read": "read", "read_file": "read", "write": "write", "write_file": "write",
    "edit": "edit", "edit_file": "edit", "grep": "search", "glob": "search",
    "web_fetch": "web", "web_search": "web", "skill": "skill", "task": "agent",
}  # fmt: skip
_CASE_KEYS = ("title", "description", "tags", "tag", "expect", "judge", "judges", "assertions")
_RECORD_KEYS = (
    "case_id", "transcript", "final_message", "exit_code", "workspace_path", "workspace_diff",
    "generated_files", "turns_executed", "turns_total", "skill_dir", "artifact_dir",
    "mock_results", "session_result",
)  # fmt: skip
_WORKSPACE, _SKILL_DIR = "__WORKSPACE__", "__SKILL_DIR__"
INPUT_PROFILE = "judge-input"
"""Stands where a record names its engine's profile: the file does not tell which it was."""


@frozen
class JudgeInput:
    record: Record
    mock_results: tuple[dict[str, Any], ...] | None = None
    """The answers of the agent judge; None: it has to be asked."""
    notes: tuple[str, ...] = ()  # What could not be taken from the file


def is_judge_input(path: Path) -> bool:
    """Whether the JSON file is such an execution, and no record of ours."""
    try:
        data = json.loads(read_text(path))
    except (InvalidFilesError, ValueError):
        return False
    return isinstance(data, dict) and "schema_version" not in data and "final_message" in data


def read_judge_input(
    path: Path, blobs: BlobStore, *, workspace: Path | None = None, skill_dir: Path | None = None
) -> JudgeInput:
    """The execution in the file; the contents of its workspace go into `blobs`.

    The folders given outrank the file's. Raises UsageError, and InvalidFilesError for its case.
    """
    text = read_text(path)
    given = {"workspace_path": workspace, "skill_dir": skill_dir}
    folders = {key: str(folder.absolute()) for key, folder in given.items() if folder is not None}
    for key, mark in (("workspace_path", _WORKSPACE), ("skill_dir", _SKILL_DIR)):
        if key in folders:
            text = text.replace(mark, json.dumps(folders[key])[1:-1])
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("final_message"), str):
        hint = "it needs `final_message`, `judge` and the like, as skill-up's judge-debug files"
        raise UsageError(f"{path}: no judge input", hint=hint)
    for key, kind in (("transcript", list | None), ("exit_code", int | None)):
        if not isinstance(data.get(key), kind):
            raise UsageError(f"{path}: `{key}` is {json.dumps(data[key])[:60]}")
    data |= folders
    known = (*_CASE_KEYS, *_RECORD_KEYS)
    unknown = sorted(set(data) - set(known))
    for key in unknown:
        if right := near_miss(key, known):
            problem = Problem(path, 1, 1, key, "unknown key", f"did you mean `{right}`?")
            raise InvalidFilesError([problem])
    notes = [f"`{key}` was left out: it has no meaning in a judge-debug file" for key in unknown]
    gate = data.get("expect")
    if isinstance(gate, dict) and "golden_file" in gate and data.get("skill_dir") == _SKILL_DIR:
        where = "its `skill_dir` is a placeholder; give --skill-dir to have it compared"
        notes.append(f"`expect.golden_file: {gate.pop('golden_file')}` was left out: {where}")
    turns = _turns(data)
    case = _case(data, [turn["content"] or "(no message)" for turn in turns], path)
    mocked = data.get("mock_results")
    mock_results = tuple(mocked) if isinstance(mocked, list) and mocked else None
    for entry in mock_results or ():
        if not isinstance(entry, dict):
            raise UsageError(f"{path}: `mock_results` has {json.dumps(entry)[:60]}, no object")
    files = _files(data.get("workspace_path"), path, blobs)
    agents = any(judge.type == "agent_judge" for judge in case.all_judges())
    if files is None and (agents or script_paths(case)):
        files = {}
        if mock_results is None:
            notes.append("it names no workspace: scripts and agents judge in an empty one")
    # What the judge's own paths start from: as given, else the folder that holds `evals/`.
    named, above = data.get("skill_dir"), path.resolve().parents
    root = next((folder for folder in above if (folder / "evals").is_dir()), Path.cwd())
    if isinstance(named, str) and named and named not in (_WORKSPACE, _SKILL_DIR):
        root = (path.parent / named).resolve()
    process = ProcessInfo(exit_code=data.get("exit_code") or 0)
    common: dict[str, Any] = {"status": "completed", "files": files, "process": process}
    record = Record(
        run_id="judge-input",
        suite=root.name,
        suite_root=str(root),
        case_id=case.id,
        case=case.model_dump(mode="json", by_alias=True, exclude_unset=True),
        engine=EngineInfo(profile=INPUT_PROFILE, adapter=INPUT_PROFILE),
        started_at="",
        duration_ms=0,
        references=keep_references(case, root, blobs),
        turns=[TurnRecord(turn_number=n, **turn, **common) for n, turn in enumerate(turns, 1)],
    )
    return JudgeInput(record, mock_results, tuple(notes))


def _turns(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Fields of a TurnRecord for each number that the entries name; without any, for one turn."""
    turns: dict[int, dict[str, Any]] = {}
    for entry in data.get("transcript") or ():
        if isinstance(entry, dict):
            number, text = entry.get("turn", 1), str(entry.get("content", ""))
            blank = {"content": "", "response": "", "transcript": []}
            turn = turns.setdefault(number if isinstance(number, int) else 1, blank)
            if entry.get("role") == "user":
                turn["content"] = f"{turn['content']}\n\n{text}" if turn["content"] else text
            elif entry.get("role") == "assistant":
                turn["response"] = text
                turn["transcript"].append(TranscriptItem(type="message", text=text))
            elif (item := _item(entry)) is not None:
                turn["transcript"].append(item)
    found = [turns[number] for number in sorted(turns)] or [{"content": ""}]
    found[-1]["response"] = data["final_message"]
    return found


def _item(entry: Mapping[str, Any]) -> TranscriptItem | None:
    role, call, result = entry.get("role"), entry.get("tool_call"), entry.get("tool_result")
    if role == "tool_call" and isinstance(call, dict):
        name, arguments, kind = str(call.get("name", "")), call.get("arguments"), call.get("kind")
        known: ToolKind = _KINDS.get(name.casefold(), "mcp" if "::" in name else "other")
        made = ToolCall(
            id=str(call.get("id", "")),
            name=name,
            kind=kind if kind in get_args(ToolKind) else known,
            arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
        )
        return TranscriptItem(type="tool_call", tool_call=made)
    if role == "tool_result" and isinstance(result, dict):
        status = result.get("status")
        tool_result = ToolResult(
            call_id=str(result.get("call_id", "")),
            status=status if status in ("success", "error") else "unknown",
            content=str(result.get("content", "")),
        )
        return TranscriptItem(type="tool_result", tool_result=tool_result)
    return None


def _case(data: dict[str, Any], messages: list[str], path: Path) -> Case:
    """The case: its judge and its gate."""
    # What Go writes for a field that is not set says nothing.
    written = {key: data[key] for key in _CASE_KEYS if data.get(key) not in (None, "", {}, [])}
    written["id"] = data.get("case_id") or path.stem
    written["input"] = {"turns": messages} if messages[1:] else {"prompt": messages[0]}
    try:
        theirs = read_case(written, Suite(), default_id=path.stem)
    except ValidationError as error:
        raise InvalidFilesError(problems_from(error, Document(path, "", written), Case)) from None
    return theirs.model_copy(update={"judge": None, "judges": theirs.all_judges() or None})


def _files(given: object, path: Path, blobs: BlobStore) -> dict[str, FileState] | None:
    """The workspace after the last turn; None if there is none to look at."""
    if not isinstance(given, str) or not given:
        return None
    beside = path.parent.parent / "workspace"
    root = beside if given in (_WORKSPACE, _SKILL_DIR) else path.parent / given
    return dict(take_snapshot(root, blobs).files) if root.is_dir() else {}


class MockedJudge:
    """A `Judge`: answers of agent judges are the file's `mock_results`, others are of `other`."""

    def __init__(self, results: Sequence[Mapping[str, Any]], other: JudgeRouter) -> None:
        self._results, self._other = results, other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._other.__aexit__(*error)

    async def answer(self, request: JudgeRequest, usage: UsageTracker) -> Sequence[CheckResult]:
        """What the file says for the judge's criteria."""
        if request.judge is None or request.judge.type != "agent_judge":
            return await self._other.answer(request, usage)
        return [mocked_result(request.judge, self._results)]


def mocked_result(judge: JudgeConfig, results: Sequence[Mapping[str, Any]]) -> CheckResult:
    """The judge's result; a criterion that the file says nothing of makes it an error."""
    votes: dict[str, list[Vote]] = {}
    missing: list[str] = []
    for name, criterion in numbered(judge.criteria).items():
        # By its text in older files.
        about = {"criterion_id": name, "criterion": criterion.outcome}.items()
        entry = next((e for e in results if any(e.get(k) == v for k, v in about)), None)
        if entry is None:
            missing.append(name)
            continue
        passed = entry.get("passed") is True
        evidence = _joined(entry.get("evidence", entry.get("reason", "")))
        reason = _joined(entry.get("failures") or []) or evidence
        votes[name] = [Vote(passed, reason, (evidence,))]
    notes = ["answered by the file's `mock_results`: no agent was asked"]
    name = judge.id or "agent_judge"
    blank = blank_result("agent_judge", "judge", name=name, notes=notes)
    if missing:
        error = f"`mock_results` has nothing for {', '.join(missing)}"
        return blank.model_copy(update={"error": error})
    return result_of_agent(judge, blank, votes, None)


def _joined(texts: Any) -> str:
    return "; ".join(map(str, texts if isinstance(texts, list) else [texts]))
