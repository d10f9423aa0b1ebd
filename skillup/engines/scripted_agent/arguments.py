"""The agent's command line."""

from __future__ import annotations

import argparse

from skillup.engines.scripted_agent import VERSION

PERMISSIONS = ("full", "edits", "read_only")
SKILL_DIRECTORIES = (".agents/skills", ".claude/skills")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """The arguments; on wrong ones the process ends with code 2 and says why on stderr."""
    parser = argparse.ArgumentParser(
        prog="scripted-agent",
        description="A small agent that answers by a script; the message comes on stdin.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"scripted-agent {VERSION}")
    parser.add_argument("--script", required=True, metavar="FILE", help="replies, as JSON")
    parser.add_argument("--home", required=True, metavar="DIR", help="holds sessions/")
    session = parser.add_mutually_exclusive_group(required=True)
    session.add_argument("--session-id", metavar="ID", help="start a session of this name")
    session.add_argument("--resume", metavar="ID", help="go on with this session")
    parser.add_argument("--system-file", metavar="FILE", help="holds added instructions")
    parser.add_argument("--model", default="scripted", metavar="NAME", help="the name to report")
    parser.add_argument("--max-turns", type=int, metavar="N", help="the most steps in this turn")
    parser.add_argument("--permission", choices=PERMISSIONS, default="full")
    parser.add_argument(
        "--skills-dir",
        action="append",
        metavar="DIR",
        help=f"where skills lie (default: {' and '.join(SKILL_DIRECTORIES)})",
    )
    return parser.parse_args(argv)
