"""What the event loop of a run makes of errors: the command that goes on is said whole."""

from __future__ import annotations

import pytest

from skillup.app.shutdown import Shutdown
from skillup.errors import SkillupError

GO_ON = "skillup run --resume /runs/x --executor dask --scheduler tcp://h:1"


def test_a_refusal_names_the_command_that_goes_on() -> None:
    async def hold() -> None:
        raise SkillupError("the disk is full", hint="make room")

    with pytest.raises(SkillupError) as raised:
        Shutdown(lambda _: None, GO_ON).run(hold)
    assert raised.value.message == "the disk is full"
    assert raised.value.hint == f"make room; go on with: {GO_ON}"


def test_what_is_no_refusal_is_not_hidden() -> None:
    async def hold() -> None:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as raised:
        Shutdown(lambda _: None, GO_ON).run(hold)
    assert raised.group_contains(ZeroDivisionError)
