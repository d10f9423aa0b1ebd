"""What the event loop of a run makes of errors: the command that goes on is said whole."""

from __future__ import annotations

import pytest

from skillup.app.shutdown import Shutdown
from skillup.errors import SkillupError

GO_ON = "skillup run --resume /runs/x --executor dask --scheduler tcp://h:1"


class Nobody:
    """Sees no signal."""

    def stopping(self, times: int) -> None:
        raise AssertionError(times)

    def abandon(self) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("make room, then go on with --resume", f"make room, then go on with `{GO_ON}`"),
        ("it is kept: go on with `skillup run --resume`", f"it is kept: go on with `{GO_ON}`"),
        ("is the server there?", "is the server there?"),
        (None, None),
    ],
)
def test_a_refusal_names_the_command_that_goes_on(hint: str | None, told: str | None) -> None:
    async def hold() -> None:
        raise SkillupError("the disk is full", hint=hint)

    with pytest.raises(SkillupError) as raised:
        Shutdown(Nobody(), GO_ON).run(hold)
    assert (raised.value.message, raised.value.hint) == ("the disk is full", told)


def test_what_is_no_refusal_is_not_hidden() -> None:
    async def hold() -> None:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as raised:
        Shutdown(Nobody(), GO_ON).run(hold)
    assert raised.group_contains(ZeroDivisionError)
