"""Which versions of a CLI's session files skillup may write.

A CLI's session format is its own and may change with any release. skillup writes a session only
for versions with which that was tried; each engine names its ranges. A session that is merely
read, resumed or judged needs no such list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Version = tuple[int, int, int]

_NUMBERS = re.compile(r"\s*v?(\d+)\.(\d+)\.(\d+)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Versions from `first` to `last`, both included: ``VersionRange("2.0.0", "2.1.197")``.

    Raises ValueError if an end is no version or they stand the wrong way round.
    """

    first: str
    last: str

    def __post_init__(self) -> None:
        ends = (parse_version(self.first), parse_version(self.last))
        if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
            raise ValueError(f"no range of versions: {self}")

    def __contains__(self, version: str) -> bool:
        """Whether it lies within the range; not if it is no release, such as ``2.1.0-beta``."""
        first, last, this = map(parse_version, (self.first, self.last, version))
        return this is not None and first is not None and last is not None and first <= this <= last

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


def parse_version(version: str) -> Version | None:
    """The three numbers of a release; None for a pre-release and for what is no version.

    Build metadata (``1.2.3+abc``) makes no difference; a word after a space (``2.1.1 (Claude
    Code)``) neither.
    """
    match = _NUMBERS.fullmatch(version)
    if match is None or (match[4] and match[4][0] not in "+ "):
        return None
    return int(match[1]), int(match[2]), int(match[3])


def format_problem(
    cli_name: str, version: str | None, ranges: Sequence[VersionRange], install: str
) -> str | None:
    """Why sessions of this version cannot be written; None if it is in one of the `ranges`.

    `install` is how to get a version that can be: it ends the sentence "use one of them (…)".
    """
    if version is not None and any(version in known for known in ranges):
        return None
    known = " and ".join(map(str, ranges))
    this = "the one here tells no version" if version is None else f"here it is {version}"
    return (
        f"sessions can be written for {cli_name} {known}, {this}: "
        f"use one of these versions ({install})"
    )
