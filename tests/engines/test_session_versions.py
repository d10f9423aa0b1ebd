"""Which versions of a CLI a session may be written for."""

from __future__ import annotations

import pytest

from skillup.engines.session_files import VersionRange, format_problem, parse_version

RANGES = (VersionRange("1.2.9", "1.2.9"), VersionRange("2.0.10", "2.1.3"))


@pytest.mark.parametrize(
    "version", ["1.2.9", "2.0.10", "2.0.99", "2.1.0", "2.1.3", "v2.1.3", "2.1.3 (Some CLI)"]
)
def test_a_version_within_a_range_is_known(version: str) -> None:
    assert format_problem("cli", version, RANGES, "get it") is None


@pytest.mark.parametrize(
    "version", ["1.2.8", "1.2.10", "2.0.9", "2.1.4", "3.0.0", "2.1", "2.1.0-beta.1", "", "new"]
)
def test_any_other_version_is_refused_with_what_is_known_and_what_to_do(version: str) -> None:
    problem = format_problem("cli", version, RANGES, "get it")

    assert problem == (
        "sessions can be written for cli 1.2.9 and 2.0.10 to 2.1.3, "
        f"here it is {version}: use one of these versions (get it)"
    )


def test_a_version_that_nobody_knows_is_refused() -> None:
    problem = format_problem("cli", None, RANGES, "get it")

    assert problem is not None
    assert "the one here tells no version" in problem


def test_numbers_are_compared_as_numbers() -> None:
    assert parse_version("2.1.10+build") == (2, 1, 10)
    assert "2.1.10" in VersionRange("2.1.9", "2.1.100")


@pytest.mark.parametrize("ends", [("2.0.0", "1.0.0"), ("2", "3.0.0"), ("2.0.0", "latest")])
def test_a_range_that_is_none_is_a_mistake(ends: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="no range"):
        VersionRange(*ends)
