"""What a described agent prints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from skillup.engines.base import Progress
from skillup.engines.command.values import SEARCH_SECONDS, holds, value_at
from skillup.engines.events import (
    EventParser,
    Failure,
    as_dict,
    as_list,
    as_text,
    content_text,
    counts,
    kind_of_status,
    kind_of_text,
    read_event,
)
from skillup.schema.base import compiled_pattern
from skillup.schema.checks import ToolKind
from skillup.schema.profile import AgentDescription, EventRule, UsagePaths
from skillup.schema.record import TranscriptItem, Usage

_LONGEST_DOCUMENT = 16 << 20
_MOST_PARSED = 8 * _LONGEST_DOCUMENT  # In all, of documents that are not whole yet
_SESSION_ID = re.compile("[^-./][^/]{0,199}")


class DescribedEvents(EventParser):
    """One turn, by the rules of a description."""

    def __init__(
        self, about: AgentDescription, session: str | None, progress: Progress = lambda _: None
    ) -> None:
        """`session`: its id, where no event says it; None: an event must."""
        super().__init__(progress)
        self._about = about
        self._used = Counter[str]()
        self._document, self._parsed = bytearray(), 0
        self._too_slow = False
        self._answer = ""
        if not _says_session(about.events):
            self.session_id = session
        self._kinds: dict[str, ToolKind] = {
            name: kind for kind, names in about.tools.items() for name in names
        }

    @property
    def failure(self) -> Failure | None:
        did_nothing = not self.response and not any(item.tool_call for item in self.items)
        if self._failure is None and self.finished and did_nothing:
            return Failure("protocol", "it ended the turn without an answer or a tool call")
        return super().failure

    def feed(self, line: bytes) -> None:
        """A line of text is no event; a document is one when it is whole."""
        if self._too_slow:
            return
        try:
            self._feed(line)
        except TimeoutError:
            what = "a regex of its description takes too long on what it printed"
            self._too_slow, self._failure = True, Failure("protocol", what)

    def _feed(self, line: bytes) -> None:
        about = self._about
        if about.output == "text":
            text = line.decode(errors="replace")
            return self._say(f"{text}\n" if text or self._parts else "", "stdout")
        noise = compiled_pattern(about.noise, False) if about.noise else None
        if noise and noise.search(line.decode(errors="replace"), timeout=SEARCH_SECONDS):
            return None
        if about.output == "events":
            return super().feed(line)
        if len(self._document) < _LONGEST_DOCUMENT:
            self._document += line + b"\n"
            is_last = line.rstrip().endswith((b"}", b"]")) and not line.startswith((b" ", b"\t"))
            if is_last and self._parsed < _MOST_PARSED:
                self._take_document()
        return None

    def _take_document(self) -> None:
        self._parsed += len(self._document)
        whole = read_event(b'{"it": %b}' % bytes(self._document))
        if not isinstance(whole, dict):
            return  # not whole yet
        self._document.clear()
        found = whole["it"]
        for event in found if isinstance(found, list) else [found]:
            self.take(as_dict(event))

    def take(self, event: dict[str, Any]) -> None:
        if not self._take(self._about.events, event, None):
            self.unknown(event)

    def _take(self, rules: Sequence[EventRule], event: Any, agent: str | None) -> bool:
        found = [rule for rule in rules if holds(rule.when, event)]
        for rule in found:
            of = as_text(value_at(event, rule.agent)) or agent if rule.agent else agent
            self._apply(rule, event, of)
            for entry in as_list(value_at(event, rule.each)) if rule.each else ():
                if not self._take(rule.rules, entry, of):
                    self.unknown(entry)
        return bool(found)

    def _apply(self, rule: EventRule, event: Any, agent: str | None) -> None:
        def text(path: str | None) -> str:
            return content_text(value_at(event, path)) if path else ""

        if session := text(rule.session):
            self._take_session(session)
        self.model = text(rule.model) or self.model
        self.notice(text(rule.notice), agent)
        self.reasoning(text(rule.reasoning), agent)
        if said := text(rule.message):
            self.message(said, agent)
            self._went_on(said if agent is None else "")
        if part := text(rule.delta):
            self._say(part, text(rule.part_of) or "message", agent)
        if rule.call is not None:
            self._call(rule, event, agent)
        if rule.result is not None:
            status = "error" if rule.result.failed and holds(rule.result.failed, event) else None
            content = text(rule.result.content)
            self.result(text(rule.result.id), "error" if status else "success", content, agent)
        if rule.usage is not None:
            self._count(rule.usage, event)
        self._answer = text(rule.answer) or self._answer
        self.response = self._answer or self.response
        if rule.error is not None:
            self._fail(text(rule.error), value_at(event, rule.status or ""))
        if rule.end:
            self.finished = self.closed = True

    def _went_on(self, said: str) -> None:
        """What failed was tried again."""
        self._failure, self.closed = None, False
        self._answer, self.response = "", said or self.response
        self.finished |= self._about.ends_with == "exit"

    def _take_session(self, session: str) -> None:
        """It becomes an argument and part of a file's name."""
        if not session.isprintable() or not _SESSION_ID.fullmatch(session):
            self._fail(f"it says that its session is {session[:80]!r}, which is no id", None)
        else:
            self.session_id = session

    def add(self, item: TranscriptItem) -> None:
        self.end()
        super().add(item)

    def _say(self, part: str, of: object, agent: str | None = None) -> None:
        def whole(text: str) -> None:
            self.message(text, agent)
            self.response = text if agent is None and not self._answer else self.response

        if part:
            if not self._parts:
                self._progress("writes")
            self.part(part, (of, agent), whole)
        self._went_on(part if agent is None else "")

    def _call(self, rule: EventRule, event: Any, agent: str | None) -> None:
        assert rule.call is not None
        name, given = as_text(value_at(event, rule.call.name)), value_at(event, rule.call.arguments)
        arguments = given if isinstance(given, dict) else {"input": given} if given else {}
        kind = self._kinds.get(name, "other")
        mcp = compiled_pattern(self._about.mcp, False) if self._about.mcp else None
        found = mcp.fullmatch(name, timeout=SEARCH_SECONDS) if mcp else None
        if found is not None and name not in self._kinds:
            name, kind = f"{found['server']}::{found['tool']}", "mcp"
        self._went_on("")
        self.call(as_text(value_at(event, rule.call.id)), name, kind, arguments, agent)

    def _count(self, paths: UsagePaths, event: Any) -> None:
        names = paths.model_dump(exclude={"of", "cached_apart"}, exclude_none=True)
        found = counts({path: value_at(event, path) for path in names.values()}, names)
        if paths.cached_apart and "input_tokens" in found:
            apart = ("cached_input_tokens", "cache_write_tokens")
            found["input_tokens"] += sum(found.get(name, 0) for name in apart)
        if paths.of == "turn":
            self._used.clear()
        self._used.update(found)
        self.usage = Usage(**self._used) if self._used else None

    def _fail(self, said: str, status: Any) -> None:
        if not said and status is None:
            return
        said, number = said or "it ended the turn with an error", as_text(status)
        by_status = kind_of_status(int(number) if re.fullmatch("[0-9]{3}", number) else 0)
        # Its own words outrank the status.
        self._failure = Failure(kind_of_text(said, self._about.errors) or by_status, said)
        self.closed = False


def _says_session(rules: Sequence[EventRule]) -> bool:
    return any(rule.session or _says_session(rule.rules) for rule in rules)
