"""`skillup doctor` says whether an engine can be given a history."""

from __future__ import annotations

from pathlib import Path

from tests.support.project import Project

KNOWN, UNKNOWN = "2.1.197", "99.0.0"


def profile_of(project: Project, version: str) -> None:
    """A profile `pinned`, of a `claude` that says it is of this version."""
    project.write({"bin/claude": f'#!/bin/sh\necho "{version} (Claude Code)"\n'})
    program: Path = project.root / "bin" / "claude"
    program.chmod(0o755)
    project.write({"engines/pinned.yaml": f"engine: claude_code\ncommand: {program}\n"})


def test_a_version_whose_sessions_cannot_be_written_gets_a_note(project: Project) -> None:
    profile_of(project, UNKNOWN)

    as_data = project.run("doctor", "pinned", "--json")
    as_text = project.run("doctor", "pinned")

    notes = [note for note in as_data.data[0]["notes"] if note.startswith("no `input.history`:")]
    assert len(notes) == 1
    assert f"here it is {UNKNOWN}" in notes[0]
    assert f"pinned: {notes[0]}" in as_text.stdout
    assert as_data.exit_code == as_text.exit_code == 0, "it works without a history"


def test_without_a_login_it_is_not_said_to_be_right(project: Project) -> None:
    profile_of(project, KNOWN)
    clean = {"HOME": str(project.root), "ANTHROPIC_API_KEY": ""}
    without = project.run("doctor", "pinned", env=clean)
    with_key = project.run("doctor", "pinned", env={**clean, "ANTHROPIC_API_KEY": "x" * 9})

    assert without.stdout.splitlines()[1].startswith("?  pinned ")
    assert "pinned: no login was found: log in with `claude`" in without.stdout
    assert without.exit_code == 0, "nobody knows that it would not work"
    assert with_key.stdout.splitlines()[1].startswith("ok  pinned ")
