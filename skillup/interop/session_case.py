"""A session of an agent as a case: its messages as turns, with checks that it suggests."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillup.errors import UsageError
from skillup.interop.draft import slug
from skillup.interop.session_record import HeldSession, record_of_session
from skillup.interop.session_suggestions import files_made, suggested_checks
from skillup.interop.yaml_writer import to_yaml
from skillup.reports.text import one_line
from skillup.schema import templates
from skillup.schema.case import Case
from skillup.schema.record import Record, TurnRecord

_TITLE = 80
_ID_WORDS = 7
_NO_SNAPSHOT = "A session has no snapshot of its files, so this can only be asked of runs:"


@dataclass(frozen=True, slots=True)
class CaseText:
    """A case file that is not written yet."""

    case_id: str
    text: str
    notes: tuple[str, ...] = ()
    """What of the session is not in the case."""


def case_of_session(
    session: HeldSession,
    *,
    schema: str,
    revision: str | None = None,
    fixture: str | None = None,
    case_id: str | None = None,
) -> CaseText:
    """The case of a session; `schema` is what its header names for editors, if anything.

    Its id is made of the first words if none is given. `fixture` is the folder of the session's
    workspace, relative to the suite. Raises UsageError if the session has no message that was
    answered, or does not tell what was said to the agent.
    """
    _check_told(session)
    words = next((turn.content for turn in session.found.turns), "")
    case_id = case_id or slug(" ".join(words[:500].split()[:_ID_WORDS]), otherwise="session")
    plain = _plain_data(session, case_id, words)
    record = record_of_session(session, Case.model_validate(plain), "")
    head = [
        *([f"# yaml-language-server: $schema={schema}"] if schema else []),
        f"# Made from the {session.engine} session {_id(session)}"
        + (f", {session.summary.started}" if session.summary.started else "") + ".",
    ]  # fmt: skip
    if revision:
        head.append(f"# The session began at {revision} of its repository.")
    head += [
        "# The checks are suggestions: what happened once. Keep what must be so, and take out what",
        "# may differ.",
    ]
    about = {key: plain[key] for key in ("id", "title", "tags")}
    parts = ["\n".join(map(_comment, head)) + "\n" + to_yaml(about)]
    if fixture is not None:
        parts.append(_fixture(fixture))
    parts.append("input:\n  turns:\n")
    for turn, data in zip(record.turns, plain["input"]["turns"], strict=True):
        parts.append(textwrap.indent("".join(_turn(turn, data, record, session)), "    "))
    return CaseText(case_id, "".join(parts), tuple(record.notes))


def _check_told(session: HeldSession) -> None:
    turns = session.found.turns
    if not turns:
        wordless = "that has a text " if session.found.wordless else ""
        raise UsageError(
            f"{session.path}: none of its messages {wordless}was answered",
            hint="there is nothing in it that a case could ask for",
        )
    if not all(turn.content.strip() for turn in turns):
        raise UsageError(
            f"{session.path}: it does not tell what the user said",
            hint="recordings of events have no prompts; give the session file of the agent itself",
        )


def _plain_data(session: HeldSession, case_id: str, words: str) -> dict[str, Any]:
    turns = []
    for turn in session.found.turns:
        data: dict[str, Any] = {"content": templates.escape(turn.content)}
        if turn.command:
            data["slash_command"] = True
        turns.append(data)
    title = one_line(words, _TITLE)
    return {"id": case_id, "title": title, "tags": ["session"], "input": {"turns": turns}}


def _id(session: HeldSession) -> str:
    return one_line(session.summary.session_id or session.path.stem, 80)


def _fixture(fixture: str) -> str:
    comment = (
        "# The workspace as it is now, after the session: undo in it what the agent has done.\n"
    )
    return comment + to_yaml({"context": {"fixture": fixture}})


def _turn(
    turn: TurnRecord, data: dict[str, Any], record: Record, session: HeldSession
) -> Iterator[str]:
    """The turn as an item of a list."""
    held = session.found.turns[turn.turn_number - 1]
    if held.interrupted:
        yield "# The user interrupted the agent here.\n"
    if held.command:
        yield "# A command of the agent's CLI, not text for the model.\n"
    yield _item(data)
    checks = suggested_checks(turn, record)
    made = files_made(turn, session.summary.cwd)
    if checks:
        yield "  # Suggested by what happened:\n  assertions:\n"
        yield textwrap.indent("".join(map(_item, checks)), "    ")
    if made:
        lines = [_NO_SNAPSHOT, *([] if checks else ["assertions:"])]
        lines += [f"  {line}" for line in _item({"files_exist": made}).splitlines()]
        yield textwrap.indent("".join(f"# {line}\n" for line in lines), "  ")


def _item(data: dict[str, Any]) -> str:
    """``- key: value``, in as many lines as it takes."""
    return textwrap.dedent(to_yaml({"x": [data]}).partition("\n")[2])


def _comment(line: str) -> str:
    """One line whatever is in it."""
    return one_line(line, 400)


def suite_text(schema: str, engine: str, skills: Sequence[str] = ()) -> str:
    """The smallest suite for a case that has none."""
    data: dict[str, Any] = {"name": "from-sessions"}
    data["engine"] = {"name": engine}
    data["skills"] = [{"path": path} for path in skills]
    return to_yaml(data, header=f"# yaml-language-server: $schema={schema}\n")
