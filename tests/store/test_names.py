"""Job ids as directories."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillup.store.places import directory_of_job, job_of_directory


def test_ordinary_ids_are_their_own_directories() -> None:
    job = "Delete-with_confirmation.v2/claude_code/with_skill/1"
    assert directory_of_job(job) == job


@pytest.mark.parametrize(
    ("job", "directory"),
    [
        ("../x", "%2E./x"),
        (".", "%2E"),
        ("a b", "a%20b"),
        ("-rf", "-rf"),
        ("", "%"),
        ("/etc", "%/etc"),
        ("raw/files", "%72aw/%66iles"),
        ("~x", "%7Ex"),
    ],
)
def test_odd_parts_are_encoded(job: str, directory: str) -> None:
    assert directory_of_job(job) == directory
    assert job_of_directory(directory) == job


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_every_id_has_a_safe_directory_and_short_ones_come_back(job: str) -> None:
    directory = directory_of_job(job)
    assert directory.isascii()
    assert not directory.startswith("/")
    parts = directory.split("/")
    assert len(parts) == len(job.split("/"))
    assert all(0 < len(part) <= 120 and not part.startswith(".") for part in parts)
    assert ".." not in PurePosixPath(directory).parts
    assert job_of_directory(directory) in (job, None)


def test_long_parts_are_cut_and_stay_different() -> None:
    one, other = directory_of_job("x" * 500 + "1"), directory_of_job("x" * 500 + "2")
    assert one != other
    assert len(one) == len(other) == 120
    assert job_of_directory(one) is None
