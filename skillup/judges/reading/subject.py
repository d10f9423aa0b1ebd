"""What an inquiry is about: the case, the exchanges to look at, and the answer that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillup.judges.reading.exchanges import Exchange, Part, exchanges_of, setting_of
from skillup.judges.reading.window import last_turns
from skillup.judges.sitting import Inquiry
from skillup.schema import templates
from skillup.schema.case import Case


@dataclass(frozen=True, slots=True)
class Subject:
    """A turn in the light of what came before it, or the whole conversation."""

    case: Case
    scope: str
    """`turn 2` or `conversation`, as in results."""
    exchanges: tuple[Exchange, ...]
    """All of the conversation, up to the turn in question; never empty."""
    shown: tuple[Exchange, ...]
    """Of these, what `window_size` leaves."""
    is_turn: bool
    variables: Mapping[str, str]
    """As they stood at its end."""
    setting: tuple[Part, ...] = ()
    """What the conversation was held under."""

    @property
    def judged(self) -> Sequence[Exchange]:
        """The exchanges that are judged; the others are context."""
        if self.is_turn:
            return self.shown[-1:]
        return [exchange for exchange in self.shown if exchange.step is not None]

    @property
    def answer(self) -> str:
        """The agent's last answer."""
        step = self.exchanges[-1].step
        return step.response if step is not None else ""

    @property
    def expected_output(self) -> str:
        """What the case says a good answer is; empty if it does not say."""
        wanted, literal = self._expected()
        if literal:
            return wanted
        return "".join(text for text, _ in templates.pieces(wanted, self.variables))

    def _expected(self) -> tuple[str, bool]:
        """As it is written, and whether that is no template."""
        step = self.exchanges[-1].step
        if not self.is_turn or self.case.input.turns is None:
            return self.case.expected_output or "", False
        wanted = self.case.input.turns
        if step is None or step.asked_by or not 1 <= step.turn_number <= len(wanted):
            return "", True
        turn = wanted[step.turn_number - 1]
        return turn.expected_output or "", turn.literal

    def target(self) -> str:
        """Tells the judge what to look at."""
        if not self.is_turn:
            return (
                "Judge the conversation as a whole: what the agent said and did in all of its "
                "turns. What stands before turn 1, if anything, is context."
            )
        label = self.exchanges[-1].label
        if len(self.shown) == 1:
            return f"Judge {label}: what the agent said and did there."
        return (
            f"Judge {label}, the last one: what the agent said and did there. "
            "Everything before it is context."
        )

    def last_answer_label(self) -> str:
        """What the last answer is called in the material."""
        return f"the answer of {self.exchanges[-1].label}"


def subject_of(inquiry: Inquiry) -> Subject:
    """What `inquiry` is about. The case is the one it is graded by: it may be an edited one."""
    record, turn = inquiry.context.record, inquiry.context.turn
    case = inquiry.case if inquiry.case is not None else Case.model_validate(record.case)
    exchanges = exchanges_of(record, turn)
    shown = exchanges if turn is None else last_turns(exchanges, case.window_size)
    scope = "conversation" if turn is None else f"turn {turn.turn_number}"
    variables = record.variables_after(None if turn is None else turn.turn_number)
    setting = setting_of(record, variables)
    return Subject(
        case, scope, tuple(exchanges), tuple(shown), turn is not None, variables, setting
    )


def parts_of(exchanges: Sequence[Exchange], kind: str) -> set[str]:
    """The labels, within material, of the parts of one kind."""
    return {f"{e.label} · {part.label}" for e in exchanges for part in e.parts if part.kind == kind}


def with_labels(parts: Sequence[Part], labels: set[str]) -> list[Part]:
    """Those of the material's parts that have one of these labels."""
    return [part for part in parts if part.label in labels]
