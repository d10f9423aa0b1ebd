"""The page of `skillup label`: one thing that a judge read, the conversation beside it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template

from skillup.judges.labels import Row
from skillup.judges.material import Part, harmless
from skillup.judges.rejudge import JudgedItem, JudgeVerdict

_FOLDED = ("call", "result", "files")


def label_page(
    place: tuple[int, int, int],
    item: JudgedItem,
    verdict: JudgeVerdict,
    parts: Iterable[tuple[str, Part]],
    row: Row,
) -> bytes:
    """HTML; `place`: the item's number from 0, how many there are, and how many have a label."""
    number, of, done = place
    label = row.get("label", "")
    buttons = (
        f'<button value="{said}" aria-pressed="{str(label == said).lower()}">'
        f"{said} <kbd>{said[0]}</kbd></button>"
        for said in ("pass", "fail", "unknown")
    )
    texts = {
        "check": item.check,
        "expected": verdict.expected,
        "job": item.job,
        "turn": f"turn {item.turn}" if item.turn else "the conversation",
        "said": str(verdict.said),
        "votes": " (its votes differ)" if verdict.divided else "",
        "reason": verdict.reason,
        "quote": verdict.quote,
        "label": label,
        "why": row.get("reason", ""),
    }
    values = {name: _shown(text) for name, text in texts.items()}
    values |= {"number": str(number), "place": f"{number + 1} of {of}", "done": str(done)}
    values["back"] = f"?item={number - 1}" if number > 0 else ""
    values["forth"] = f"?item={number + 1}" if number + 1 < of else ""
    page = Template((files(__package__) / "label_page.html").read_text("utf-8"))
    talk = _talk(list(parts))
    return page.substitute(values, buttons="".join(buttons), talk=talk).encode(errors="replace")


def _talk(parts: list[tuple[str, Part]]) -> str:
    """What tools did is folded; the last answer is what is judged."""
    answers = [place for place, (_, part) in enumerate(parts) if part.kind == "answer"]
    pieces, last = list[str](), ""
    for place, (exchange, part) in enumerate(parts):
        if exchange != last:
            pieces.append(f"<h2>{_shown(exchange)}</h2>")
            last = exchange
        text = f"<pre>{_shown(part.text)}</pre>"
        if part.kind in _FOLDED:
            pieces.append(f"<details><summary>{_shown(part.label)}</summary>{text}</details>")
            continue
        judged = ' id="judged"' if place in answers[-1:] else ""
        head = f"<h3>{_shown(part.label)}</h3>"
        pieces.append(f'<section class="{part.kind}"{judged}>{head}{text}</section>')
    return "".join(pieces)


def _shown(text: str) -> str:
    return escape(harmless(text))
