"""What a shell command printed, and whether a skill's file is in it."""

from __future__ import annotations

import time

from skillup.checks.skill_reading import was_read
from skillup.schema.record import ToolResult


def test_the_time_it_takes_grows_no_faster_than_what_was_printed() -> None:
    """Lines of numbers, as of `seq`, may all stand before a name as those of `cat -n` do."""

    def seconds(lines: int) -> float:
        printed = "\n".join(["", *map(str, range(lines))])
        result = ToolResult(call_id="1", status="error", content=printed)
        began = time.process_time()
        assert not was_read(result, ["tidy"])
        return time.process_time() - began

    few, many = (min(seconds(lines) for _ in range(3)) for lines in (1000, 8000))
    assert many < 24 * max(few, 0.001)  # eight times as much; quadratic time: sixty-four times
