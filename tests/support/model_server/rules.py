"""Scripts made of rules: which user text, in which turn, is answered by which steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.model_server.replies import Reply, Text, has_call
from tests.support.model_server.requests import ModelRequest

Script = Callable[[ModelRequest], Reply]
Step = Reply | Script


@dataclass(frozen=True)
class Rule:
    """What to answer to the user texts that match.

    `pattern` is searched in the latest user text. `steps` are taken by tool round: the first is
    the answer to the user's text, the second follows the first one's tool results, and so on; a
    step may be a function of the request. After the last step the last one is given again if it
    calls no tool, else the text `Done.`. `turn` (1-based) limits the rule to the nth user message,
    `api` to one of the APIs.
    """

    pattern: str
    steps: Sequence[Step]
    turn: int | None = None
    api: str | None = None

    def matches(self, request: ModelRequest) -> bool:
        """Whether this rule answers the request."""
        return (
            self.turn in (None, len(request.user_texts))
            and self.api in (None, request.api)
            and re.search(self.pattern, request.latest) is not None
        )

    def reply(self, request: ModelRequest) -> Reply:
        """The step for the request's tool round."""
        over = request.tool_round >= len(self.steps)
        step = self.steps[-1 if over else request.tool_round]
        reply = step(request) if callable(step) else step
        return Text("Done.") if over and has_call(reply) else reply


def echo(request: ModelRequest) -> Reply:
    """The answer `Turn N: TEXT`, where N is the number of user messages so far."""
    return Text(f"Turn {len(request.user_texts)}: {request.latest}")


def by_rules(*rules: Rule, otherwise: Script = echo) -> Script:
    """The script in which the first rule that matches answers; without one, `otherwise`."""

    def script(request: ModelRequest) -> Reply:
        for rule in rules:
            if rule.matches(request):
                return rule.reply(request)
        return otherwise(request)

    return script
