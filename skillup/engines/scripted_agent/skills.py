"""The skills that are installed in the workspace."""

from __future__ import annotations

import os


def installed_skills(directories: list[str]) -> dict[str, str]:
    """Name → path of its SKILL.md, sorted; a skill's name is that of its directory."""
    found: dict[str, str] = {}
    for directory in directories:
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            path = os.path.join(directory, name, "SKILL.md")
            if os.path.isfile(path):
                found.setdefault(name, path)
    return dict(sorted(found.items()))
