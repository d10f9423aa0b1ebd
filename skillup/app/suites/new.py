"""The files that `skillup init` writes: a suite with three cases that run as they are.

Every value is put in as a JSON string, which YAML reads as the same text whatever is in it. Each
case has a `scripted:` section, so that it also runs offline, with the agent that skillup ships.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from skillup.errors import InvalidFilesError, UsageError
from skillup.importers.write import write_files
from skillup.load.discover import workspace_root
from skillup.load.json_schema import json_schema
from skillup.load.profiles import load_profile
from skillup.schema.templates import escape
from skillup.workspace.skills import SKILL_FILE, skill_description, skill_name, skill_problem

IGNORE = ".gitignore"
_FIRST_WORDS = 200
_WHEN = r"(?:when(?:ever)?|if)\s+(?:(?:the|a)\s+)?(?:user|someone|you)s?\s+"
_WHOM = r"(?:\s+(?:you|claude|the agent))?"
_WISHES = {
    rf"{_WHEN}(?:wants?|asks?|needs?){_WHOM}\s+to\s+([^.;:]+)": "I want to {}.",
    rf"{_WHEN}(?:asks?{_WHOM}\s+for|requests?|wants?|needs?)\s+([^.;:,]+)": "I need {}.",
}


@dataclass(frozen=True, slots=True)
class NewSuite:
    """What is to be written, in the user's words."""

    skill: str
    """The skill's name, as its SKILL.md has it."""
    name: str
    """The suite's name."""
    engine: str
    model: str | None
    request: str
    """What a user says who needs the skill."""
    other_request: str | None
    """What a user says who does not; None: a sum, whose answer is checked, too."""
    profile: str | None = None
    """The name of a profile to write; None: none."""


def skill_of(directory: Path, name: str | None, *, example: bool) -> tuple[str, str]:
    """The skill's name and description. Raises UsageError, InvalidFilesError if there is none."""
    file = directory / SKILL_FILE
    if example:
        if os.path.lexists(file):
            raise UsageError(
                f"{file} is there already",
                hint="leave --example out to write evals/ for this skill",
            )
        wish = "Use whenever the user wants to note a book in the reading list"
        return name or "reading-list", wish
    if not file.exists():
        where = "has no SKILL.md" if directory.is_dir() else "is no directory"
        raise UsageError(
            f"{directory} {where}",
            hint="give a skill's directory; or make a sample skill: skillup init DIR --example",
        )
    problem = skill_problem(directory)
    if problem is not None:
        raise InvalidFilesError([problem])
    found = skill_name(directory)
    if any("\ud800" <= character <= "\udfff" for character in found):
        raise UsageError(
            f"the name of {directory} is not UTF-8 text, so no case can name the skill",
            hint="write its `name` in the front matter of SKILL.md",
        )
    return found, skill_description(directory)


def checked_engine(name: str, directory: Path, profile: str | None) -> str:
    """`name` if it is an engine or a profile; a new `profile` can be one of an engine only."""
    found = load_profile(name, workspace_root(directory), os.environ)
    if profile is not None and found.engine != name:
        raise UsageError(
            f"--profile {profile} would be one of {name}, which is a profile itself",
            hint=f"give --engine {found.engine}, or leave --profile out",
        )
    return name


def check_profile(name: str | None, directory: Path) -> None:
    """Raises UsageError if no profile of that name can be written for `directory`."""
    if name is None:
        return
    if not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(f"--profile {name}: no name", hint="letters, digits, - and _")
    root = workspace_root(directory)
    if root != directory.resolve():
        raise UsageError(
            f"--profile {name}: profiles of this workspace are in {root / 'engines'}",
            hint="write it there, and give its name with --engine",
        )


def request_from(description: str, skill: str) -> str:
    """What a user might say who needs the skill.

    From ``whenever the user wants to …`` or ``when the user asks for …``, if it says so.

    >>> request_from("Cleans logs. Use whenever the user wants to rotate logs.", "log-keeper")
    'I want to rotate logs. Can you help me with that?'
    """
    for pattern, sentence in _WISHES.items():
        found = re.search(pattern, description, re.IGNORECASE)
        if found is not None:
            what = found[1].strip()
            if len(what) > _FIRST_WORDS:
                what = what[: _FIRST_WORDS - 1].rstrip() + "…"
            return f"{sentence.format(what)} Can you help me with that?"
    # What a skill says of itself is nothing that a user says.
    return f"Can you help me with {' '.join(re.split('[-_]+', skill))}?"


def all_files(suite: NewSuite, root: Path, *, example: bool) -> dict[str, str]:
    """What is written for `suite`, by the path below the skill's directory `root`."""
    files = suite_files(suite)
    if example:
        files["SKILL.md"] = _example_skill(suite.skill)
    for which in ("suite", "case", *(["profile"] if suite.profile else [])):
        text = json.dumps(json_schema(which), indent=2, ensure_ascii=False)
        files[f"evals/schema/{which}.schema.json"] = text + "\n"
    # Within a workspace runs go into that one's `.skillup/`, which is its own business.
    own = workspace_root(root) == root.resolve()
    ignored = ignore_line(root) if own or suite.profile is not None else None
    return files | ({IGNORE: ignored} if ignored is not None else {})


def _suite(suite: NewSuite) -> str:
    engine = _text(suite.profile or suite.engine)
    if suite.model and not suite.profile:
        engine += f", model: {{name: {_text(suite.model)}}}"
    exclude = ', exclude: ["engines/**"]' if suite.profile else ""
    return f"""\
# yaml-language-server: $schema=schema/suite.schema.json
#   skillup run .                        in the skill's directory: the engine below
#   skillup run . --engine claude_code   the same cases with another one
#   skillup run . --baseline             with and without the skill: what does it add?
name: {_text(suite.name)}
skills:
  - {{path: .{exclude}}}
engine: {{name: {engine}}}
cases:
  parallelism: 2
  defaults:
    timeout_seconds: 600
"""


def suite_files(suite: NewSuite) -> dict[str, str]:
    """The suite's own files by their path in the skill's directory, schemas apart."""
    skill, request = _text(suite.skill), suite.request
    other = suite.other_request
    other_answer = "" if other else '  - contains: "391"\n'
    stop = "" if request[-1:] in (".", "!", "?", "") else "."
    files = {
        "evals/eval.yaml": _suite(suite),
        "evals/cases/uses-the-skill.yaml": f"""\
# yaml-language-server: $schema=../schema/case.schema.json
id: uses-the-skill
title: A request that the skill is for makes the agent use it
tags: [trigger]
input:
  turns:
    - content: {_literal(request)}
assertions:
  - skill_used: {_literal(suite.skill)}
  # What should come of it? For example, the first two without, the third with a judge's model:
  # - contains: {{any: [done, ready]}}
  # - files_exist: ["*.md"]
  # - The answer says what was done, in plain words
# How the agent that skillup ships answers; real agents do not see it.
scripted:
  - needs_skill: {skill}
    steps: [{{skill: {skill}}}]
    say: I have done as the skill says.
  - say: I have no skill for that, so I did what I could.
""",
        "evals/cases/leaves-it-alone.yaml": f"""\
# yaml-language-server: $schema=../schema/case.schema.json
id: leaves-it-alone
title: A request that the skill is not for does not make the agent use it
tags: [trigger]
input:
  turns:
    - content: {_literal(other or "What is 17 times 23? Only the number, please.")}
assertions:
  - skill_not_used: {_literal(suite.skill)}
{other_answer}scripted:
  - say: {_text("Gladly." if other else "391")}
""",
        "evals/cases/two-turns.yaml": f"""\
# yaml-language-server: $schema=../schema/case.schema.json
id: two-turns
title: The second message is answered in the light of the first
tags: [conversation]
input:
  turns:
    - content: {_literal(f"{request}{stop} Call this job JUNIPER-7.")}
      capture:                       # taken out of the answer; usable as <<job>> from here on
        - {{variable: job, pattern: '(JUNIPER-\\d)', default: JUNIPER-7}}
    - content: "What did I call this job? Change no file."
      assertions:
        - contains: JUNIPER-7
        - tool_not_called: {{kind: write}}
scripted:
  - turn: 1
    needs_skill: {skill}
    steps: [{{skill: {skill}}}]
    say: Noted as JUNIPER-7, and done as the skill says.
  - turn: 1
    say: Noted as JUNIPER-7.
  - turn: 2
    say: You called it JUNIPER-7.
""",
    }
    if suite.profile is not None:
        files[f"engines/{suite.profile}.yaml"] = _profile(suite)
    return files


def _profile(suite: NewSuite) -> str:
    model = f"model: {_text(suite.model)}" if suite.model else "# model: as the CLI takes it"
    return f"""\
# yaml-language-server: $schema=../evals/schema/profile.schema.json
# How the engine is run; `skillup schema profile` has every key, and
# `skillup doctor` says whether the engine can be used.
engine: {suite.engine}
{model}
permission: full               # full | edits | read_only
isolation: clean               # clean: a home of its own for each trial | shared: yours
timeout_seconds: 300           # a turn's
# api_key_env: NAME            # the variable that holds the key, never the key itself
"""


def _example_skill(name: str) -> str:
    """The SKILL.md of a small skill to try skillup with."""
    return f"""\
---
name: {_text(name)}
description: Keeps a reading list. Use whenever the user wants to note, find or tick off a book.
---

# Reading list

The list is the file `reading-list.md` in the working directory, one book a line:

    - [ ] Title (Author)

1. To note a book, add a line. If the author is not known, ask; do not guess.
2. To find one, search the file and quote the line.
3. To tick one off, make its `[ ]` an `[x]`. Never remove a line.
"""


def _literal(text: str) -> str:
    """`text` where templates are filled in."""
    return _text(escape(text))


def _text(text: str) -> str:
    """A JSON string, with the escapes that YAML's double-quoted form needs besides."""

    def escaped(character: str) -> str:
        number = ord(character)
        return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"

    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else escaped(c) for c in quoted)


def existing(root: Path, files: Mapping[str, str]) -> list[str]:
    """Which of `files` are there already, and what else `evals/` holds; paths within `root`."""
    evals = root / "evals"
    there = {name for name in files if os.path.lexists(root / name) and name != IGNORE}
    if evals.is_dir():
        there |= {f"evals/{path.name}" for path in evals.iterdir()}
        there -= {name for name in there if name.count("/") > 1}
    elif os.path.lexists(evals):
        there.add("evals")
    return sorted(there)


def ignore_line(root: Path) -> str | None:
    """What .gitignore has to hold once runs are kept out of git; None if they are already.

    Also None where .gitignore is a link: what it leads to may be shared with others.
    """
    path = root / IGNORE
    if path.is_symlink():
        return None
    try:
        text = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
    except OSError as error:
        hint = "make it readable, or a file"
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from error
    if {line.strip().strip("/") for line in text.splitlines()} & {".skillup", "**/.skillup"}:
        return None
    return text + ("" if not text or text.endswith("\n") else "\n") + ".skillup/\n"


def write_suite(root: Path, files: Mapping[str, str]) -> None:
    """Write `files` below `root`, in place of those that are there.

    Raises UsageError if it cannot be done, or if a link in `root` would lead it elsewhere.
    """
    for name in files:
        if not (root / name).parent.resolve().is_relative_to(root.resolve()):
            raise UsageError(
                f"{(root / name).parent} leads out of {root}",
                hint="make it a directory, or choose another one",
            )
    write_files({root / name: text for name, text in files.items()}, force=True)
