"""Where Claude Code looks for the sessions of a working directory: `projects/<slug>`."""

from __future__ import annotations

import re
from pathlib import Path

_LONGEST_SLUG = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOT_IN_SLUGS = re.compile(rb"[^a-zA-Z0-9]")


def project_folder(engine_home: Path, workspace: Path) -> Path:
    """The folder for sessions held in `workspace`, a real path; it need not exist."""
    return engine_home / "projects" / slug_of(str(workspace))


def slug_of(directory: str) -> str:
    """Whatever is no ASCII letter or digit becomes a dash; long ones are cut and get a hash.

    As claude 2.1 does it. It counts in UTF-16 units: an emoji becomes two dashes.
    """
    units = _utf16_units(directory)
    plain = "".join(chr(unit) if unit < 128 else "-" for unit in units).encode("ascii")
    slug = _NOT_IN_SLUGS.sub(b"-", plain).decode("ascii")
    if len(slug) <= _LONGEST_SLUG:
        return slug
    return f"{slug[:_LONGEST_SLUG]}-{_base36(_hash(units))}"


def _utf16_units(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[n] | data[n + 1] << 8 for n in range(0, len(data), 2)]


def _hash(units: list[int]) -> int:
    """31 times the hash so far, plus the next unit, in signed 32 bits; its amount."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return (1 << 32) - value if value >> 31 else value


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
