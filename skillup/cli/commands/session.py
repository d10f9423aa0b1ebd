"""`skillup session`: the agents' own sessions."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from skillup.cli import options as o
from skillup.cli.options import option
from skillup.errors import UsageError

SESSION: Any = typer.Argument(
    ..., help="An id, the beginning of one, or a file.", metavar="SESSION"
)
session = typer.Typer(
    help="The agents' own sessions: which are here, and what was said in them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@session.command("list")
def list_sessions(
    engine: str | None = option(None, "Only those of this engine.", "--engine", "-e"),
    project: Path | None = option(None, "Only sessions of this folder or below."),
    limit: int = option(20, "The newest N.", min=1),
    as_json: bool = o.JSON,
) -> int:
    """List the sessions that the agents' CLIs have kept, newest first."""
    from skillup.reports.terminal.listing import ListedSession, print_sessions, session_as_dict
    from skillup.reports.text import plain
    from skillup.sessions.index import HEAD_BYTES, newest_heads, session_files, session_homes

    homes = session_homes(os.environ)
    chosen = {name: place for name, place in homes.items() if engine in (None, name)}
    if not chosen:
        raise UsageError(f"--engine {engine}: unknown", hint=f"one of {', '.join(homes)}")
    files = session_files(chosen)
    found = newest_heads(files, project, limit)
    rows = [
        ListedSession(**asdict(file), summary=head, whole=file.size <= HEAD_BYTES)
        for file, head in found
    ]
    if as_json:
        data = [session_as_dict(row) for row in rows]
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    elif rows:
        print_sessions(rows, more=len(rows) == limit < len(files))
    else:
        places = ", ".join(map(str, chosen.values()))
        of_project = f" of {project}" if project else ""
        sys.stderr.write(plain(f"no sessions{of_project} in {places}\n"))
    return 0


@session.command("show")
def show_session(session: str = SESSION, full: bool = o.FULL, as_json: bool = o.JSON) -> int:
    """Print a session as a transcript."""
    from skillup.reports.terminal.layout import make_console
    from skillup.reports.terminal.listing import (
        foot_lines,
        head_lines,
        print_entries,
        session_json,
    )
    from skillup.sessions.index import (
        find_session,
        read_head,
        session_format,
    )

    path = find_session(session, os.environ)
    format_ = session_format(path)
    reader, engine = format_.reader(), format_.engine
    if as_json:
        sys.stdout.write(session_json(engine, path, reader.read(path), reader.summary))
        return 0
    head = read_head(path, path.stat().st_size) or reader.summary
    lines = head_lines(engine, path, head)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    print_entries(reader.read(path), make_console(sys.stdout), full=full)
    agents = sorted(path.with_suffix("").glob("subagents/agent-*.jsonl"))
    lines = foot_lines(reader.summary, sub_agents=agents)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


@session.command("to-case")
def session_to_case(
    session: str = SESSION,
    out: Path | None = option(None, "The case's file. Default: stdout."),
    with_fixture: bool = option(
        False, "Copy the session's workspace beside the case.", "--with-fixture"
    ),
    force: bool = o.FORCE,
) -> int:
    """Make a case of a session: its messages as turns, and checks that it suggests."""
    from skillup.app.suites import write_case

    return write_case(session, out, with_fixture=with_fixture, force=force)
