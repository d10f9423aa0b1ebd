"""Whether a shell command that names a skill's SKILL.md got to see it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillup.schema.record import ToolResult

# What shells and their tools say of a file that they could not open.
_NOT_OPENED = re.compile(
    r"no such file|not found|cannot open|can't open|cannot find|permission denied|is a directory",
    re.IGNORECASE,
)


def was_read(result: ToolResult | None, names: Iterable[str]) -> bool:
    """Whether the command read the skill's file, as far as its `result` tells.

    `names` are those that the skill's directory may have. A command may have read the file and
    failed at something else, or ended well without having found it. So what it printed comes first:
    SKILL.md begins with the skill's name. Else the exit code decides, and complaints about the
    file. Of a command that was never answered nothing else is known than that it asked.
    """
    if result is None:
        return True
    wanted = "|".join(map(re.escape, names))
    # Line numbers may stand before it: `cat -n`, `nl`, `rg -n`.
    begins = rf"^[ \t\d:|-]*+name:[ \t]*['\"]?(?:{wanted})['\"]?[ \t]*\r?$"
    if re.search(begins, result.content, re.IGNORECASE | re.MULTILINE):
        return True
    if result.status == "error":
        return False
    file = re.compile(rf"(?:{wanted})[/\\]skill\.md", re.IGNORECASE)
    lines = result.content.splitlines()
    return not any(_NOT_OPENED.search(line) and file.search(line) for line in lines)
