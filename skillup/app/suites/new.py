"""What `skillup init` writes: a suite with three cases that run as they are.

Every value is put in as a JSON string, which YAML reads as the same text whatever is in it. Each
case has a `scripted:` section, so that it also runs offline, with the agent that skillup ships.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers.write import relative, write_files
from skillup.load.discover import workspace_root
from skillup.load.skills import SKILL_FILE, skill_description, skill_name, skill_problem
from skillup.schema.templates import escape

_WISH = re.compile(
    r"\busers? (?:asks?|needs?|wants?)(?: you)?(?: for)? ([^.;:]{1,200})", re.IGNORECASE
)


def new_suite(root: Path, engine: str, request: str | None) -> dict[Path, str]:
    """The files of a suite for the skill in `root`.

    `request` is what a user says who needs the skill. Raises UsageError, InvalidFilesError if there
    is no skill.
    """
    if not (root / SKILL_FILE).exists():
        where = "has no SKILL.md" if root.is_dir() else "is no directory"
        raise UsageError(f"{root} {where}", hint="give a skill's directory")
    problem = skill_problem(root)
    if problem is not None:
        raise InvalidFilesError([problem])
    skill = skill_name(root)
    request = request or request_for(skill_description(root), skill)
    files = {root / "evals/eval.yaml": _header(root / "evals", "suite") + _suite(skill, engine)}
    header = _header(root / "evals/cases", "case")
    for name, text in _cases(skill, request).items():
        files[root / f"evals/cases/{name}.yaml"] = f"{header}id: {name}\n{text}"
    return files


def _header(folder: Path, kind: str) -> str:
    """The workspace's JSON Schema, if it has one, as a file in `folder` names it to editors."""
    path = workspace_root(folder) / "docs" / "schema" / f"{kind}.schema.json"
    schema = relative(folder, path)
    return f"# yaml-language-server: $schema={schema}\n" if path.is_file() else ""


def request_for(description: str, skill: str) -> str:
    """What a user might say who needs the skill.

    From ``whenever the user wants to …`` or ``when the user asks for …``, if it says so.

    >>> request_for("Cleans logs. Use whenever the user wants to rotate logs.", "log-keeper")
    'I want to rotate logs. Can you help me with that?'
    """
    if (found := _WISH.search(description)) is not None:
        return f"I want {found[1].strip()}. Can you help me with that?"
    # What a skill says of itself is nothing that a user says.
    return f"Can you help me with {' '.join(re.split('[-_]+', skill))}?"


def _suite(skill: str, engine: str) -> str:
    return f"""\
#   skillup run .                        in the skill's directory: the engine below
#   skillup run . --engine claude_code   the same cases with another one
#   skillup run . --baseline             with and without the skill: what does it add?
name: {_text(skill)}
skills:
  - {{path: .}}
engine: {{name: {_text(engine)}}}
cases:
  parallelism: 2
  defaults:
    timeout_seconds: 600
"""


def _cases(skill: str, request: str) -> dict[str, str]:
    """By their ids, all but these and what names their schema."""
    name, literal = _text(skill), _text(escape(skill))
    stop = "" if request[-1:] in (".", "!", "?", "") else "."
    return {
        "uses-the-skill": f"""\
title: A request that the skill is for makes the agent use it
tags: [trigger]
input:
  turns:
    - content: {_text(escape(request))}
assertions:
  - skill_used: {literal}
  # What should come of it? For example, the first two without, the third with a judge's model:
  # - contains: {{any: [done, ready]}}
  # - files_exist: ["*.md"]
  # - The answer says what was done, in plain words
# How the agent that skillup ships answers; real agents do not see it.
scripted:
  - needs_skill: {name}
    steps: [{{skill: {name}}}]
    say: I have done as the skill says.
  - say: I have no skill for that, so I did what I could.
""",
        "leaves-it-alone": f"""\
title: A request that the skill is not for does not make the agent use it
tags: [trigger]
input:
  turns:
    - content: What is 17 times 23? Only the number, please.
assertions:
  - skill_not_used: {literal}
  - contains: "391"
scripted:
  - say: "391"
""",
        "two-turns": f"""\
title: The second message is answered in the light of the first
tags: [conversation]
input:
  turns:
    - content: {_text(escape(f"{request}{stop} Call this job JUNIPER-7."))}
      capture:                       # taken out of the answer; usable as <<job>> from here on
        - {{variable: job, pattern: '(JUNIPER-\\d)', default: JUNIPER-7}}
    - content: "What did I call this job? Change no file."
      assertions:
        - contains: JUNIPER-7
        - tool_not_called: {{kind: write}}
scripted:
  - turn: 1
    needs_skill: {name}
    steps: [{{skill: {name}}}]
    say: Noted as JUNIPER-7, and done as the skill says.
  - turn: 1
    say: Noted as JUNIPER-7.
  - turn: 2
    say: You called it JUNIPER-7.
""",
    }


def _text(text: str) -> str:
    """A JSON string, with the escapes that YAML's double-quoted form needs besides."""

    def escaped(character: str) -> str:
        number = ord(character)
        return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"

    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else escaped(c) for c in quoted)


def write_suite(root: Path, files: Mapping[Path, str], *, force: bool) -> None:
    """Write `files`; with `force` in place of those that are there.

    Raises UsageError if `evals/` is there already, if it cannot be done, or if a link in `root`
    would lead it elsewhere.
    """
    evals = root / "evals"
    if not force and os.path.lexists(evals) and not (evals.is_dir() and not any(evals.iterdir())):
        raise UsageError(
            f"{evals} is there already",
            hint="run it with `skillup run`; --force replaces the files that init writes, and "
            "leaves the others",
        )
    for path in files:
        if not path.parent.resolve().is_relative_to(root.resolve()):
            hint = "make it a directory, or choose another one"
            raise UsageError(f"{path.parent} leads out of {root}", hint=hint)
    write_files(files, force=True)
