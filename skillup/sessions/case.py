"""A session of an agent as a case: its messages as turns, with checks that it suggests."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from skillup.checks.context import CheckContext
from skillup.checks.evaluate import evaluate
from skillup.checks.tools import argument
from skillup.dataclass import frozen
from skillup.errors import UsageError
from skillup.importers.write import literal_checks, slug, to_yaml
from skillup.process.run import run_quiet
from skillup.redaction.secrets import NO_SECRETS, Secrets
from skillup.reports.text import one_line
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.checks import Check
from skillup.schema.record import Record, ToolCall, TurnRecord
from skillup.sessions.record import RecordedSession, record_of_session

# Words of an answer that a check may go by: names of files, and what stands in quotes.
_PHRASE = re.compile(
    r"(?<![\w/.-])((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z][A-Za-z0-9]{0,5})(?![\w/])"
    r"|`([^`\n]{2,40})`|“([^”\n]{2,40})”|\"([^\"\n]{2,40})\""
)
# What differs from run to run by its nature.
_CHANGING = re.compile(
    r"[0-9a-f]{7,}|\d\d:\d\d|\d{4}-\d\d|^v?\d+(?:\.\d+)+$|/tmp|/var/|/home/|/Users/|https?:"
    r"|<<|>>|\{\{|\}\}|\s{2}|(?:com|org|net|io|dev)$",
    re.IGNORECASE,
)
_MOST_PHRASES = 3
_MOST_TOOLS = 4
_MOST_FILES = 5
_TITLE = 80
_ID_WORDS = 7


def key_phrases(answer: str) -> list[str]:
    """The first few that may be there again."""
    found = ("".join(groups).strip(" .,;:!?") for groups in _PHRASE.findall(answer))
    lasting = (one for one in dict.fromkeys(found) if one and not _CHANGING.search(one))
    return list(filter(str.isprintable, lasting))[:_MOST_PHRASES]


def _suggested_checks(turn: TurnRecord, record: Record) -> list[dict[str, Any]]:
    """Checks of the turn that pass for what happened, as YAML data."""
    checks: list[dict[str, Any]] = []
    for call in _succeeded(turn):
        if call.kind == "skill":
            name = argument(call, "skill")
            check: dict[str, Any] = {"skill_used": name.text.removeprefix("/") if name else ""}
        elif call.kind in ("mcp", "other"):
            check = {"tool_called": {"name": call.name}}
        else:  # a name is the agent's own; a kind is what another agent has, too
            check = {"tool_called": {"kind": call.kind}}
        if check not in checks:
            checks.append(check)
    phrases = ({"contains": text} for text in key_phrases(turn.response))
    suggested = literal_checks([*checks[:_MOST_TOOLS], *phrases])
    passed = [check for check in suggested if _passes(check, turn, record)]
    return passed or ([{"matches": r"\S"}] if turn.response.strip() else [])


def _succeeded(turn: TurnRecord) -> list[ToolCall]:
    succeeded = {result.call_id for result in turn.tool_results if result.status != "error"}
    return [call for call in turn.tool_calls if call.id in succeeded]


def _files_made(turn: TurnRecord, cwd: str) -> list[str]:
    """Files of the workspace that tools wrote, relative to it."""
    paths: dict[str, None] = {}
    for call in _succeeded(turn):
        given = argument(call, "path") if call.kind in ("write", "edit") else None
        if given is not None and call.arguments.get("change") != "delete":
            path = os.path.relpath(Path(cwd, given.text), cwd)
            if not path.startswith("..") and not set(path) & set("*?[]{}<>"):
                paths[path] = None
    return list(paths)[:_MOST_FILES]


def _passes(check: dict[str, Any], turn: TurnRecord, record: Record) -> bool:
    try:
        model = Check.model_validate(check)
    except ValueError:
        return False
    return evaluate(model, CheckContext(record, turn, lambda _: None)).passed


@frozen
class CaseText:
    """A case file that is not written yet."""

    text: str
    notes: tuple[str, ...] = ()  # What of the session is not in the case


def case_of_session(
    session: RecordedSession, *, case_id: str | None = None, fixture: str | None = None
) -> CaseText:
    """The case of a session, which begins in `fixture`, a copy of the session's workspace.

    Raises UsageError if the session has no message that was answered.
    """
    turns = session.turns
    if not turns:
        raise UsageError(
            f"{session.path}: none of its messages was answered",
            hint="there is nothing in it that a case could ask for",
        )
    words = turns[0].content
    case_id = case_id or slug(" ".join(words[:500].split()[:_ID_WORDS]), otherwise="session")
    inputs: list[dict[str, Any]] = [{"content": templates.escape(turn.content)} for turn in turns]
    for data, source in zip(inputs, turns, strict=True):
        if source.command:
            data["slash_command"] = True
    about = {"id": case_id, "title": one_line(words, _TITLE), "tags": ["session"]}
    record = record_of_session(
        session, Case.model_validate({**about, "input": {"turns": inputs}}), ""
    )
    name = one_line(session.summary.session_id or session.path.stem, 80)
    started = f", {session.summary.started}" if session.summary.started else ""
    head = [f"# Made from the {session.engine} session {name}{started}."]
    cwd = session.summary.cwd
    if fixture is not None:
        head.append("# The fixture is as the session left it: undo in it what the agent has done.")
    elif cwd:
        head.append(f"# What it needs of its workspace, {cwd}, belongs in `context.fixture`.")
    head += [
        "# The checks are suggestions: what happened once. Keep what must be so, and take out what",
        "# may differ.",
    ]
    for turn, data in zip(record.turns, inputs, strict=True):
        if checks := _suggested_checks(turn, record):
            data["assertions"] = checks
        if cwd and (made := _files_made(turn, cwd)):
            check = json.dumps({"files_exist": made}, ensure_ascii=False)
            head.append(f"# Of runs, not of sessions, ask in turn {turn.turn_number}: {check}")
    header = "".join(one_line(line, 400) + "\n" for line in head)
    context = {"context": {"fixture": fixture}} if fixture is not None else {}
    text = header + to_yaml({**about, **context, "input": {"turns": inputs}})
    return CaseText(text, tuple(record.notes))


def suite_text(engine: str) -> str:
    """The smallest suite for a case that has none."""
    return to_yaml({"name": "from-sessions", "engine": {"name": engine}, "skills": []})


_SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", "auth.json"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa*", "id_ed25519*"),
    *("*credential*", "*secret*", ".aws", ".ssh", ".gnupg", ".docker", ".kube", ".azure"),
)
# The forms that issuers give their keys so that they are found.
_KEY = re.compile(
    rb"(?<![A-Za-z0-9])(?:sk-(?:ant|proj|svcacct|admin|or)-[\w-]{8,}|sk-[A-Za-z0-9]{32,}"
    rb"|(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    rb"|glpat-[\w-]{20,}|xox[abeprs]-[A-Za-z0-9-]{10,}|AIza[\w-]{35}|[rs]k_live_[A-Za-z0-9]{16,})"
    rb"|-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY"
)
_NEVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".skillup"})
_LARGEST = 1 << 20
_MOST_COPIED = 5_000


def copy_workspace(
    workspace: Path, fixture: Path, environment: Mapping[str, str]
) -> tuple[int, dict[str, list[str]]]:
    """Copies the regular files into `fixture`: how many; and the paths left out, by the reason.

    Raises UsageError if the workspace is gone, holds a home directory or more than 5,000 files, or
    if `fixture` is there already or cannot be written.
    """
    hint = "leave --with-fixture out, and give the case a fixture of your own"
    if not (workspace.is_absolute() and workspace.is_dir()):
        raise UsageError(f"the session's workspace is not here any more: {workspace}", hint=hint)
    here = workspace.resolve()
    if Path(environment.get("HOME", here.anchor)).resolve().is_relative_to(here):
        raise UsageError(f"the session ran in {workspace}: too much for a fixture", hint=hint)
    files = anyio.run(_not_ignored, here, environment)
    if len(files) > _MOST_COPIED:
        raise UsageError(f"{workspace} has more than {_MOST_COPIED} files", hint=hint)
    left_out: dict[str, list[str]] = {}
    secrets = NO_SECRETS.also_of(environment)
    copied = 0
    try:
        fixture.mkdir(parents=True)
        for path in files:
            why = _why_not(here / path, path, secrets)
            if why is not None:
                left_out.setdefault(why, []).append(path)
                continue
            (fixture / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(here / path, fixture / path)
            copied += 1
    except FileExistsError:
        raise UsageError(f"{fixture} is there already", hint="remove it first") from None
    except OSError as error:
        raise UsageError(f"cannot copy to {fixture}: {error.strerror or error}") from None
    return copied, left_out


async def _not_ignored(here: Path, environment: Mapping[str, str]) -> list[str]:
    """All files below `here`, sorted; in a repository those that git does not ignore."""
    git = ("git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-co", "--exclude-standard")
    own = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    done = await run_quiet(git, cwd=here, env=own, timeout_seconds=60.0)
    # Nothing is listed where a repository above ignores all of it.
    if done.exit_code == 0 and done.stdout:
        found = set(done.stdout.split("\0")) - {""}
        kept = (path for path in found if not _NEVER & {*Path(path).parts})
        return sorted(path for path in kept if os.path.lexists(here / path))
    walked: list[str] = []
    for folder, names, files in os.walk(here):
        names[:] = sorted(set(names) - _NEVER)
        walked += ((Path(folder) / name).relative_to(here).as_posix() for name in files)
    return sorted(walked)


def _why_not(file: Path, path: str, secrets: Secrets) -> str | None:
    parts = [part for part in path.casefold().split("/") if not part.endswith(".example")]
    if any(fnmatch.fnmatchcase(part, name) for part in parts for name in _SECRET_NAMES):
        return "may hold secrets"
    if file.resolve() != file or not file.is_file():  # a link, or behind one
        return "no regular file"
    if not os.access(file, os.R_OK):
        return "may not be read"
    if file.stat().st_size > _LARGEST:
        return f"over {_LARGEST >> 20} MiB"
    data = file.read_bytes().replace(b"\0", b"")  # as UTF-16 has it, too
    has_key = _KEY.search(data) is not None or secrets.mask_bytes(data) != data
    return "holds what looks like a key" if has_key else None
