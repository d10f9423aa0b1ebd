"""SKILL.md, as far as skillup needs it: that it is there, the skill's name and description."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem
from skillup.load.file_text import read_text

SKILL_FILE = "SKILL.md"
_FENCE = "---"
_LONGEST_NAME = 255


def skill_problem(directory: Path) -> Problem | None:
    """Why this directory is no usable skill; None if it is one.

    Looked for: a SKILL.md that is there and is UTF-8 text, and, if it has front matter, that this
    is a YAML mapping whose ``name`` can be a directory's name.
    """
    found = _front_matter(directory)
    return found if isinstance(found, Problem) else None


def skill_name(directory: Path) -> str:
    """The ``name`` of the front matter, else the directory's; ask `skill_problem` first."""
    found = _front_matter(directory)
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else directory.resolve().name


def skill_description(directory: Path) -> str:
    """The ``description`` of the front matter; empty if there is none."""
    found = _front_matter(directory)
    text = found.get("description") if isinstance(found, dict) else None
    return " ".join(text.split()) if isinstance(text, str) else ""


def _front_matter(directory: Path) -> dict[str, object] | Problem:
    """The front matter; empty if there is none."""
    path = directory / SKILL_FILE
    try:
        if not path.exists():
            raise FileNotFoundError
        text = read_text(path)
    except FileNotFoundError:
        where = "it has" if directory.is_dir() else "no such directory:"
        fix = "give the directory that holds SKILL.md"
        return Problem(path, 0, 0, "", f"{where} no {SKILL_FILE}", fix)
    except InvalidFilesError as error:
        return error.problems[0]
    except OSError as error:
        return Problem(path, 0, 0, "", f"it cannot be read: {error.strerror}")
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return {}
    end = next((n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == _FENCE), None)
    if end is None:
        return Problem(path, 1, 1, "", "its front matter has no end", f"close it with {_FENCE}")
    front = lines[1:end]
    if all(not line.strip() or line.lstrip().startswith("#") for line in front):
        return {}
    # The first fence becomes an empty line, so that the lines of problems are those of the file.
    return _parsed("\n".join(["", *front]), path)


def _parsed(text: str, path: Path) -> dict[str, object] | Problem:
    from skillup.load.yaml_reader import parse_yaml

    try:
        data = parse_yaml(text, path).data
    except InvalidFilesError as invalid:
        return invalid.problems[0]
    return _checked(data, path)


def _checked(front: dict[str, object], path: Path) -> dict[str, object] | Problem:
    name = front.get("name")
    if name is None:
        return front
    if not isinstance(name, str) or not name.strip():
        return Problem(path, 2, 1, "name", "it must be text", "write a short name")
    unseen = next((character for character in name if not character.isprintable()), None)
    if unseen is not None:
        code = f"U+{ord(unseen):04X}"
        called = unicodedata.name(unseen, "a control character")
        why = f"it has a character that nobody would see: {code} ({called})"
        return Problem(path, 2, 1, "name", why, "leave it out")
    if "/" in name or name in (".", ".."):
        return Problem(
            path, 2, 1, "name", f"{name!r} cannot be a directory's name", "use letters and hyphens"
        )
    if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        why = "it is longer than a directory's name can be"
        return Problem(path, 2, 1, "name", why, f"at most {_LONGEST_NAME} bytes")
    return front
