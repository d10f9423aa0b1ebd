"""What makes a directory a skill: its SKILL.md, and the name in it."""

from __future__ import annotations

from pathlib import Path

from skillup.errors import InvalidFilesError, Problem
from skillup.load.yaml_reader import parse_yaml, read_text

SKILL_FILE = "SKILL.md"
_FENCE = "---"
_LONGEST_NAME = 255


def skill_problem(directory: Path) -> Problem | None:
    """Why this directory is no usable skill, as its SKILL.md or `name` is missing or unfit."""
    found = _front_matter(directory)
    return found if isinstance(found, Problem) else None


def skill_name(directory: Path) -> str:
    """The ``name`` of the front matter, else the directory's; ask `skill_problem` first."""
    return _text_of(directory, "name") or directory.resolve().name


def skill_description(directory: Path) -> str:
    """The ``description`` of the front matter; empty if there is none."""
    return " ".join(_text_of(directory, "description").split())


def _text_of(directory: Path, field: str) -> str:
    found = _front_matter(directory)
    text = found.get(field) if isinstance(found, dict) else None
    return text if isinstance(text, str) else ""


def _front_matter(directory: Path) -> dict[str, object] | Problem:
    """The front matter; empty if there is none."""
    path = directory / SKILL_FILE
    try:
        path.stat()
        text = read_text(path)
        lines = text.splitlines()
        if not lines or lines[0].rstrip() != _FENCE:
            return {}
        ends = [n for n, line in enumerate(lines) if n and line.rstrip() == _FENCE]
        if not ends:
            return Problem(path, 1, 1, "", "its front matter has no end", f"close it with {_FENCE}")
        front = lines[1 : ends[0]]
        if all(not line.strip() or line.lstrip().startswith("#") for line in front):
            return {}
        # The first fence becomes an empty line, so that problems have the lines of the file.
        data = parse_yaml("\n".join(["", *front]), path).data
    except FileNotFoundError:
        where = "it has" if directory.is_dir() else "no such directory:"
        fix = "give the directory that holds SKILL.md"
        return Problem(path, 0, 0, "", f"{where} no {SKILL_FILE}", fix)
    except InvalidFilesError as error:
        return error.problems[0]
    except OSError as error:
        return Problem(path, 0, 0, "", f"it cannot be read: {error.strerror}")
    if (name := data.get("name")) is None:
        return data
    if not isinstance(name, str) or not name.strip():
        return Problem(path, 2, 1, "name", "it must be text", "write a short name")
    long = len(name.encode("utf-8", "replace")) > _LONGEST_NAME
    if long or not name.isprintable() or "/" in name or name in (".", ".."):
        what = f"{name[:80]!a} cannot be a directory's name"
        return Problem(path, 2, 1, "name", what, "use letters and hyphens")
    return data
