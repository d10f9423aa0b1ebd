"""Fills the placeholders of a script; the list of them is in `skillup/schema/scripted.py`.

Only these forms are touched: any other text in double braces is a template of somebody else's.
"""

from __future__ import annotations

import re

from skillup.engines.scripted_agent.errors import AgentError
from skillup.engines.scripted_agent.sessions import AgentSession

_FORMS = re.compile(
    r"\{\{(?:(user|system|skills|output|turn)"
    r"|match\.(\w+)|remember\.([A-Za-z_][\w.-]*)|(turns|history)\.(\d+)\.(user|answer))\}\}"
)


class Placeholders:
    """What the placeholders of one turn stand for. `output` changes while the turn goes on."""

    def __init__(
        self,
        session: AgentSession,
        message: str,
        match: re.Match[str] | None,
        system: str,
        skills: str,
    ) -> None:
        self.output: str | None = None
        self._session = session
        self._match = match
        self._simple = {
            "user": message,
            "system": system,
            "skills": skills,
            "turn": str(session.next_turn),
        }
        # The present message will join the session; {{turns.N}} means those before it.
        self._earlier = list(session.exchanges)

    def fill(self, text: str) -> str:
        """Raises AgentError `script` if something in `text` has no value here."""
        return _FORMS.sub(self._value, text) if "{{" in text else text

    def _value(self, found: re.Match[str]) -> str:
        simple, group, remembered, where, number, part = found.groups()
        if simple == "output":
            value = self.output
            why = "no step before it has an output"
        elif simple:
            return self._simple[simple]
        elif group:
            return self._group(found.group(), group)
        elif remembered:
            value = self._session.remembered.get(remembered)
            why = "nothing of that name was remembered in this session"
        else:
            value, why = self._earlier_turn(where, int(number), part)
        if value is None:
            raise _missing(found.group(), why)
        return value

    def _group(self, form: str, group: str) -> str:
        if self._match is None:
            raise _missing(form, "the reply has no `when`")
        try:
            return self._match[int(group) if group.isdecimal() else group] or ""
        except IndexError:
            raise _missing(form, f"`when` has no group {group}") from None

    def _earlier_turn(self, where: str, number: int, part: str) -> tuple[str | None, str]:
        exchanges = self._earlier if where == "turns" else self._session.history
        count = len(exchanges)
        if not 1 <= number <= count:
            what = "earlier turn" if where == "turns" else "message"
            of = "" if where == "turns" else " of a history"
            return None, f"this session holds {count} {what}{'s' if count != 1 else ''}{of}"
        exchange = exchanges[number - 1]
        return (exchange.user if part == "user" else exchange.answer), "it was not answered"


def _missing(form: str, why: str) -> AgentError:
    return AgentError("script", f"{form} has no value: {why}")
