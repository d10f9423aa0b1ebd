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

from skillup.errors import UsageError
from skillup.importers.write import write_files
from skillup.schema.templates import escape

SUITE = "evals/eval.yaml"
IGNORE = ".gitignore"
_FIRST_WORDS = 200
_WHEN_THE_USER = r"(?:when(?:ever)?|if)\s+(?:(?:the|a)\s+)?(?:user|someone|you)s?\s+"
_WISH = re.compile(
    _WHEN_THE_USER
    + r"(?:wants?|asks?|needs?)(?:\s+(?:you|claude|the agent))?\s+to\s+(?P<what>[^.;:]+)",
    re.IGNORECASE,
)
_THING = re.compile(
    _WHEN_THE_USER
    + r"(?:asks?(?:\s+(?:you|claude|the agent))?\s+for|requests?|wants?|needs?)\s+"
    + r"(?P<what>[^.;:,]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NewSuitePlan:
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


def request_from(description: str, skill: str) -> str:
    """What a user might say who needs the skill.

    From ``whenever the user wants to …`` or ``when the user asks for …``, if it says so.

    >>> request_from("Cleans logs. Use whenever the user wants to rotate logs.", "log-keeper")
    'I want to rotate logs. Can you help me with that?'
    """
    wish = _WISH.search(description)
    if wish is not None:
        return f"I want to {_shortened(wish['what'].strip())}. Can you help me with that?"
    thing = _THING.search(description)
    if thing is not None:
        return f"I need {_shortened(thing['what'].strip())}. Can you help me with that?"
    # What a skill says of itself is nothing that a user says.
    return f"Can you help me with {' '.join(re.split('[-_]+', skill))}?"


def suite_files(plan: NewSuitePlan) -> dict[str, str]:
    """The files by their path in the skill's directory, schemas apart."""
    files = {
        SUITE: _suite(plan),
        "evals/cases/uses-the-skill.yaml": _uses(plan),
        "evals/cases/leaves-it-alone.yaml": _leaves(plan),
        "evals/cases/two-turns.yaml": _two_turns(plan),
    }
    if plan.profile is not None:
        files[f"engines/{plan.profile}.yaml"] = _profile(plan)
    return files


def example_skill(name: str) -> str:
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


def _suite(plan: NewSuitePlan) -> str:
    engine = plan.profile or plan.engine
    model = f", model: {{name: {_text(plan.model)}}}" if plan.model and not plan.profile else ""
    exclude = ', exclude: ["engines/**"]' if plan.profile else ""
    return f"""\
# yaml-language-server: $schema=schema/suite.schema.json
#   skillup run .                        in the skill's directory: the engine below
#   skillup run . --engine claude_code   the same cases with another one
#   skillup run . --baseline             with and without the skill: what does it add?
name: {_text(plan.name)}
skills:
  - {{path: .{exclude}}}
engine: {{name: {_text(engine)}{model}}}
cases:
  parallelism: 2
  defaults:
    timeout_seconds: 600
"""


def _uses(plan: NewSuitePlan) -> str:
    return f"""\
# yaml-language-server: $schema=../schema/case.schema.json
id: uses-the-skill
title: A request that the skill is for makes the agent use it
tags: [trigger]
input:
  turns:
    - content: {_literal(plan.request)}
assertions:
  - skill_used: {_literal(plan.skill)}
  # What should come of it? For example, the first two without, the third with a judge's model:
  # - contains: {{any: [done, ready]}}
  # - files_exist: ["*.md"]
  # - The answer says what was done, in plain words
# How the agent that skillup ships answers; real agents do not see it.
scripted:
  - needs_skill: {_text(plan.skill)}
    steps: [{{skill: {_text(plan.skill)}}}]
    say: I have done as the skill says.
  - say: I have no skill for that, so I did what I could.
"""


def _leaves(plan: NewSuitePlan) -> str:
    request = plan.other_request or "What is 17 times 23? Only the number, please."
    answer = "" if plan.other_request else '  - contains: "391"\n'
    return f"""\
# yaml-language-server: $schema=../schema/case.schema.json
id: leaves-it-alone
title: A request that the skill is not for does not make the agent use it
tags: [trigger]
input:
  turns:
    - content: {_literal(request)}
assertions:
  - skill_not_used: {_literal(plan.skill)}
{answer}scripted:
  - say: {_text("Gladly." if plan.other_request else "391")}
"""


def _two_turns(plan: NewSuitePlan) -> str:
    stop = "" if plan.request[-1:] in (".", "!", "?", "") else "."
    request = f"{plan.request}{stop} Call this job JUNIPER-7."
    return f"""\
# yaml-language-server: $schema=../schema/case.schema.json
id: two-turns
title: The second message is answered in the light of the first
tags: [conversation]
input:
  turns:
    - content: {_literal(request)}
      capture:                       # taken out of the answer; usable as <<job>> from here on
        - {{variable: job, pattern: '(JUNIPER-\\d)', default: JUNIPER-7}}
    - content: "What did I call this job? Change no file."
      assertions:
        - contains: JUNIPER-7
        - tool_not_called: {{kind: write}}
scripted:
  - turn: 1
    needs_skill: {_text(plan.skill)}
    steps: [{{skill: {_text(plan.skill)}}}]
    say: Noted as JUNIPER-7, and done as the skill says.
  - turn: 1
    say: Noted as JUNIPER-7.
  - turn: 2
    say: You called it JUNIPER-7.
"""


def _profile(plan: NewSuitePlan) -> str:
    model = f"model: {_text(plan.model)}" if plan.model else "# model: as the CLI takes it"
    return f"""\
# yaml-language-server: $schema=../evals/schema/profile.schema.json
# How the engine is run; `skillup schema profile` has every key, and
# `skillup doctor` says whether the engine can be used.
engine: {plan.engine}
{model}
permission: full               # full | edits | read_only
isolation: clean               # clean: a home of its own for each trial | shared: yours
timeout_seconds: 300           # a turn's
# api_key_env: NAME            # the variable that holds the key, never the key itself
"""


def _literal(text: str) -> str:
    """`text` where templates are filled in."""
    return _text(escape(text))


def _text(text: str) -> str:
    # YAML's double-quoted form takes all of JSON's escapes; what JSON leaves as it is, it may not.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else _escaped(c) for c in quoted)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _shortened(text: str) -> str:
    return text if len(text) <= _FIRST_WORDS else text[: _FIRST_WORDS - 1].rstrip() + "…"


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
