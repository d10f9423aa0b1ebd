"""How long a run will go on, from how long its trials have taken so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_FEWEST = 2


class Pace:
    """Durations of the trials that have ended, by what they were trials of."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def add(self, of: str, seconds: float) -> None:
        """A trial of `of` (a case on an engine) has ended."""
        self._taken.setdefault(of, []).append(seconds)

    def left(
        self, running: Iterable[tuple[str, float]], waiting: Iterable[str], at_once: int
    ) -> float | None:
        """Seconds until the last trial ends; None as long as too little is known.

        `running` are trials with the seconds they have taken, `waiting` those that have not begun,
        `at_once` is how many are held at a time. A trial takes the mean of its like, or of all, and
        no less than those of its like that go on have taken already.
        """
        # In one step: the display reckons in a thread of its own, while others tell of trials.
        ended = [taken for some in list(self._taken.values()) for taken in some]
        if len(ended) < _FEWEST:
            return None
        running, waiting = list(running), list(waiting)
        usual = _mean([*ended, *_beyond((passed for _, passed in running), ended)])
        going: dict[str, list[float]] = {}
        for of, passed in running:
            going.setdefault(of, []).append(passed)
        # Once for each case, not for each of its trials: there may be thousands, at each redrawing.
        takes = {of: self._usual_of(of, going, usual) for of in {*going, *waiting}}
        still = [max(takes[of] - passed, 0.0) for of, passed in running]
        ahead = [takes[of] for of in waiting]
        longest = max([*still, *ahead], default=0.0)
        return max(longest, (sum(still) + sum(ahead)) / max(at_once, 1))

    def _usual_of(self, of: str, going: Mapping[str, Sequence[float]], usual: float) -> float:
        """What a trial of `of` takes; of those that go on and are long already, at least that."""
        ended, now = self._taken.get(of, []), going.get(of, ())
        if ended:
            return _mean([*ended, *_beyond(now, ended)])
        return max([usual, *now])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _beyond(going: Iterable[float], ended: Sequence[float]) -> list[float]:
    """Those that have taken longer than what has ended: else a run that begins with its fastest
    trials would always be about to end.
    """
    usual = _mean(ended)
    return [passed for passed in going if passed > usual]


def about(seconds: float) -> str:
    """A guess, no finer than it is: ``a few seconds``, ``about 40 s``, ``about 4 min``."""
    if seconds < 8:
        return "a few seconds"
    if seconds < 90:
        return f"about {round(seconds / 10) * 10} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    hours, minutes = divmod(round(seconds / 600) * 10, 60)
    return f"about {hours} h {minutes:02d} min" if minutes else f"about {hours} h"
