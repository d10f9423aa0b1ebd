"""How a run stands: what is running and what it is doing, counts, what it has taken, how long yet.

Kept by whoever shows the run; pure but for the clock, which is handed in.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from skillup.plan import Job, Plan
from skillup.reports.text import money, one_line, plain, seconds, tokens
from skillup.schema.grade import Grade
from skillup.trial import TrialEvent

if TYPE_CHECKING:
    from rich.text import Text


# How long a run will go on, from how long its trials have taken so far.

_FEWEST = 2


class Eta:
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


Amount = TypeVar("Amount", int, float)
_PREPARING = "preparing the workspace"
_WAITING = "waiting for the agent"
_THINKS = "thinks"
_SIMULATED = "simulated user: "


@dataclass(slots=True)
class Running:
    """A trial that is being held."""

    job: Job
    began: float
    attempt: int = 1
    turn: int = 0
    turns: int = 0
    doing: str = _PREPARING
    calls: dict[str, str] = field(default_factory=dict)
    """Of calls that have not returned: what was told of them."""
    tokens: int | None = None
    cost_usd: float | None = None


class RunProgress:
    """What has been heard of a run so far."""

    def __init__(
        self,
        plan: Plan,
        *,
        finished: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`finished` are the trials that an earlier start of the run has ended."""
        self.clock = clock
        self.began = clock()
        self.running: dict[str, Running] = {}
        self.counts: Counter[str] = Counter()
        self.tokens: int | None = None
        self.cost_usd: float | None = None
        done = set(finished)
        self.kept = sum(job.id in done for job in plan.jobs)
        self.total = len(plan.jobs)
        self._waiting = {job.id: job for job in plan.jobs if job.id not in done}
        self._at_once = 0
        self._pace = Eta()

    @property
    def done(self) -> int:
        """Trials that have ended, earlier ones too."""
        return self.kept + sum(self.counts.values())

    @property
    def waiting(self) -> int:
        """Trials that have not begun."""
        return len(self._waiting)

    def start(self, job: Job, attempt: int) -> None:
        """A trial (or another attempt at it) begins."""
        self._waiting.pop(job.id, None)
        before = self.running.get(job.id)
        running = Running(job, self.clock(), attempt)
        if attempt > 1:
            running.doing = f"attempt {attempt}"
        if before is not None and before.attempt == attempt:  # goes on after turns it shared
            running.tokens, running.cost_usd = before.tokens, before.cost_usd
        elif before is not None:  # was spent all the same, and the trial's grade will not have it
            self.tokens = _sum(self.tokens, before.tokens)
            self.cost_usd = _sum(self.cost_usd, before.cost_usd)
        self.running[job.id] = running
        self._at_once = max(self._at_once, len(self.running))

    def hear(self, event: TrialEvent) -> None:
        """Something happens in a trial."""
        running = self.running.get(event.job)
        if running is None:
            return
        many = f" (shared by {event.shared_by} trials)" if event.shared_by > 1 else ""
        if event.kind == "turn_started":
            running.turn, running.turns = event.turn, event.turns
            said = f"{_SIMULATED}{event.text}" if event.text else ""
            running.doing = (said or _WAITING) + many
        elif event.kind == "message_sent" and event.source == "follow_up":
            running.doing = f"follow-up: {event.text}{many}"
        elif event.kind == "message_sent":
            running.calls.clear()
            if not running.doing.startswith(_SIMULATED):  # what that user said stands meanwhile
                running.doing = _WAITING + many
        elif event.kind == "item" and event.item is not None:
            if event.item.tool_call is not None:
                running.calls[event.item.tool_call.id] = ""
            elif event.item.tool_result is not None:
                running.calls.pop(event.item.tool_result.call_id, None)
                running.doing = next(reversed(running.calls.values()), "") or _THINKS + many
        elif event.kind == "activity":
            running.doing = event.text + many
            for call, told in running.calls.items():
                running.calls[call] = told or running.doing
        elif event.kind == "turn_ended":
            running.doing = "between two turns" if event.turn < event.turns else "judging"
            running.tokens = _sum(running.tokens, event.tokens)
            running.cost_usd = _sum(running.cost_usd, event.cost_usd)

    def end(self, job: Job, grade: Grade) -> None:
        """A trial has ended."""
        self._waiting.pop(job.id, None)
        running = self.running.pop(job.id, None)
        self.counts[grade.status] += 1
        if running is not None and grade.status != "SKIP":
            self._pace.add(_like(job), self.clock() - running.began)
        usage = grade.usage or {}
        for name in ("input_tokens", "output_tokens"):
            self.tokens = _sum(self.tokens, usage.get(name))
        self.cost_usd = _sum(self.cost_usd, grade.cost_usd)

    def elapsed(self, since: float | None = None) -> int:
        """Milliseconds since then, or since the beginning."""
        return round((self.clock() - (self.began if since is None else since)) * 1000)

    def spent(self) -> tuple[int | None, float | None]:
        """Tokens and cost so far, running trials included; None: nobody told."""
        tokens, cost = self.tokens, self.cost_usd
        for running in list(self.running.values()):
            tokens, cost = _sum(tokens, running.tokens), _sum(cost, running.cost_usd)
        return tokens, cost

    def seconds_left(self) -> float | None:
        """How long it will go on; None as long as too little is known."""
        now = self.clock()
        running = [(_like(r.job), now - r.began) for r in list(self.running.values())]
        waiting = [_like(job) for job in list(self._waiting.values())]
        return self._pace.left(running, waiting, self._at_once)


def _like(job: Job) -> str:
    """Trials of a case, on an engine, in a variant take about equally long."""
    return job.id.rsplit("/", 1)[0]


def _sum(a: Amount | None, b: Amount | None) -> Amount | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


# The live display as lines of text that fit the terminal: a line for each running trial, counts.

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_A_SECOND = 8
_LEAST_DOING = 18
_WORDS = {"PASS": "passed", "FAIL": "failed", "ERROR": "in error", "SKIP": "skipped"}
STYLE = {"PASS": "green", "FAIL": "red", "ERROR": "bold magenta", "SKIP": "yellow"}


def view(
    standing: RunProgress,
    label: Callable[[Job], str],
    width: int,
    height: int,
    notice: str = "",
    mask: Callable[[str], str] = str,
) -> list[Text]:
    """The lines, at most ``height - 1`` of at most ``width - 1`` cells each."""
    from rich.text import Text

    width = max(width - 1, 10)
    foot = list(_foot(standing))
    if notice:
        foot.append(Text(notice, style="bold yellow"))
    running = list(standing.running.values())
    room = max(height - 1 - len(foot), 0)
    shown = running if len(running) <= room else running[: max(room - 1, 0)]
    lines = list(_rows(standing, shown, label, width, mask))
    if room and len(shown) < len(running):
        lines.append(Text(f"  … and {len(running) - len(shown)} more", style="dim"))
    lines += foot[: max(height - 1, 1)]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines


def _rows(
    standing: RunProgress,
    shown: list[Running],
    label: Callable[[Job], str],
    width: int,
    mask: Callable[[str], str],
) -> Iterator[Text]:
    """Columns as wide as what stands in them, as far as the agent's doings leave them room."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    frame = FRAMES[int(standing.elapsed() * _FRAMES_A_SECOND / 1000) % len(FRAMES)]
    turn = "turn {0}/{1}" if width >= 79 else "{0}/{1}"
    cells = [
        [
            label(r.job),
            turn.format(r.turn, r.turns) if r.turns else "",
            seconds(standing.elapsed(r.began)),
            f"{tokens(r.tokens)} tok" if r.tokens is not None else "",
            money(r.cost_usd) if r.cost_usd is not None else "",
        ]
        for r in shown
    ]
    if not cells:
        return
    widths = [max(cell_len(row[column]) for row in cells) for column in range(5)]
    longest = widths[0]
    widths[0] = min(longest, max(width * 2 // 5, 12))
    while len(widths) > 3 and width - 2 - sum(w + 2 for w in widths if w) < _LEAST_DOING:
        widths.pop()
    spare = width - 2 - sum(w + 2 for w in widths if w) - _LEAST_DOING
    widths[0] = min(longest, widths[0] + max(spare, 0))
    for row, running in zip(cells, shown, strict=True):
        line = Text(f"{frame} ", style="cyan")
        line.append(set_cell_size(without_middle(row[0], widths[0]), widths[0]), style="default")
        for text, wide in zip(row[1:], widths[1:], strict=False):
            if wide:
                line.append("  " + set_cell_size("", wide - cell_len(text)) + text, style="dim")
        line.append("  " + one_line(mask(plain(running.doing)), width), style="default")
        yield line


def without_middle(text: str, cells: int) -> str:
    """`text` in so many cells: what tells names apart is at their ends, as a trial's number is."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= cells:
        return text
    room = max((cells - 1) // 2, 0)
    begin = len(text)
    while begin and cell_len(text[begin - 1 :]) <= room:
        begin -= 1
    return f"{set_cell_size(text, max(cells - 1 - room, 0)).rstrip()}…{text[begin:].lstrip()}"


def _foot(standing: RunProgress) -> Iterator[Text]:
    """Two lines: how many stand where; time, money and what is left."""
    from rich.text import Text

    counts = Text(f"{standing.done}/{standing.total} trials", style="bold")
    for status, word in _WORDS.items():
        if standing.counts[status]:
            counts.append("  ")
            counts.append(f"{standing.counts[status]} {word}", style=STYLE[status])
    yield counts
    yield Text(", ".join(going_words(standing)), style="dim")


def going_words(standing: RunProgress) -> Iterator[str]:
    """``3 running``, ``25 waiting``, ``12 s``, ``about 4 min left``, ``9k tokens``, ``$0.31``.

    What matters most comes first: a narrow terminal cuts the rest. What is not known is left out.
    """
    for number, word in (
        (standing.kept, "kept"),
        (len(standing.running), "running"),
        (standing.waiting, "waiting"),
    ):
        if number:
            yield f"{number} {word}"
    yield seconds(standing.elapsed())
    left = standing.seconds_left()
    if left is not None and (standing.running or standing.waiting):
        yield f"{about(left)} left"
    used, cost = standing.spent()
    if used is not None:
        yield f"{tokens(used)} tokens"
    if cost is not None:
        yield money(cost)
