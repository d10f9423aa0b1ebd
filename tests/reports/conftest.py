"""For tests of what one thread shows while others tell of trials."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    """So often that what may go wrong between them does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
