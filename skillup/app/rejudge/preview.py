"""`skillup judge --show-prompt` and `--estimate`: what would be asked. Nobody is."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from skillup.app.rejudge.judging import RejudgeRequest, Rejudging
from skillup.errors import ExitCode
from skillup.judges.models import Preview, StoredAnswer
from skillup.judges.question import parse_model
from skillup.reports.terminal.layout import make_console, print_line, print_table
from skillup.reports.text import count, money, plain, say, tokens
from skillup.schema.record import total_cost

_CHARACTERS = 4  # Of a token, as a rule of thumb
_TEXTS = ("system", "prompt", "question")  # Of what is asked; shown as they are
_NOT_SEEN = "what hangs on a question without an answer (behind a gate, say) is not among them"


def _preview(request: RejudgeRequest, each: Preview) -> int:
    """Every question once, in the order in which they come up; the exit code."""
    seen = set[str]()

    def once(key: str, asked: dict[str, Any], stored: StoredAnswer | None) -> None:
        if key not in seen:
            seen.add(key)
            each(key, asked, stored)

    judging = Rejudging(replace(request, preview=once))
    for _ in judging.graded(judging.items()):
        pass
    return ExitCode.ERROR if judging.counts.damaged else ExitCode.PASSED


def show_questions(request: RejudgeRequest) -> int:
    """Each with its key and its stored answer, on stdout; as JSON, each on a line."""
    number = missing = 0

    def show(key: str, asked: dict[str, Any], stored: StoredAnswer | None) -> None:
        nonlocal number, missing
        number, missing = number + 1, missing + (stored is None)
        answer = stored.model_dump(mode="json", exclude={"asked"}) if stored else None
        if request.as_json:
            sys.stdout.write(json.dumps({"key": key, "asked": asked, "stored": answer}) + "\n")
            return
        texts = {name: text for name, text in asked.items() if name in _TEXTS}
        settings = {k: v for k, v in asked.items() if k not in (*_TEXTS, "answer")}
        parts = {"asked": settings, **texts}
        parts |= {"form of the answer": asked["answer"]} if "answer" in asked else {}
        sys.stdout.write(f"===== question {number}: {key} =====\n")
        for title, part in (parts | {"stored answer": answer or "no answer is stored"}).items():
            text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, indent=2)
            sys.stdout.write(plain(f"----- {title} -----\n{text}\n"))
        sys.stdout.write("\n")

    code = _preview(request, show)
    rest = f", {missing} without an answer: {_NOT_SEEN}" if missing else ""
    say(f"{count(number, 'question')}{rest}")
    return code


@dataclass(slots=True)
class _Asked:
    """What one model, or agents, are asked."""

    questions: int = 0
    stored: int = 0
    input_tokens: int | None = 0  # None: what an agent reads is not known before
    input_cost_usd: float | None = 0.0  # None: not known


def estimate_cost(request: RejudgeRequest) -> int:
    """Requests, input tokens and what they cost, by model."""
    found: dict[str, _Asked] = {}

    def add(_: str, asked: dict[str, Any], stored: StoredAnswer | None) -> None:
        agent = asked.get("agent_judge")
        one = found.setdefault(f"agent {agent}" if agent else asked["model"], _Asked())
        one.questions += 1
        if stored is not None:
            one.stored += 1
        elif agent:
            one.input_tokens = one.input_cost_usd = None
        else:
            sent = (asked["system"], asked["prompt"], json.dumps(asked["answer"]))
            took = sum(map(len, sent)) // _CHARACTERS
            paid = took // 2 if request.batch else took
            cost = None if asked["base_url"] else _price(asked["model"], paid)
            one.input_tokens = (one.input_tokens or 0) + took
            known = None not in (cost, one.input_cost_usd)
            one.input_cost_usd = total_cost([one.input_cost_usd, cost]) if known else None

    code = _preview(request, add)
    if request.as_json:
        sys.stdout.write(json.dumps({name: asdict(one) for name, one in found.items()}) + "\n")
        return code
    console, rows = make_console(sys.stdout), []
    for name, one in found.items():
        counts = map(str, (one.questions, one.stored, one.questions - one.stored))
        rows.append([name, *counts, tokens(one.input_tokens), money(one.input_cost_usd)])
    heads = ["", "questions", "stored", "to ask", "input tokens", "their cost"]
    print_table(console, rows, heads)
    print_line(console, f"At least that: tokens are characters / {_CHARACTERS}, answers cost more,")
    print_line(console, f"and {_NOT_SEEN}.")
    return code


def _price(model: str, input_tokens: int) -> float | None:
    """USD; 0 for a written-down judge; None where no price is known."""
    provider, name = parse_model(model)
    if provider == "scripted":
        return 0.0
    with suppress(ImportError, LookupError):
        from genai_prices import Usage, calc_price

        family = provider.partition("-")[0]
        price = calc_price(Usage(input_tokens=input_tokens), name, provider_id=family)
        return float(price.total_price)
    return None
