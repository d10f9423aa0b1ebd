"""Tests that are turns of one conversation, made into one case."""

from __future__ import annotations

from skillup.interop.draft import CaseDraft


def merged(cases: list[CaseDraft]) -> CaseDraft:
    """One case that says what `cases` say, one after the other."""
    first = cases[0]
    first.conversation = True
    described = [first.title] if first.title else []
    for case in cases[1:]:
        if case.system != first.system:
            case.node.changed("another system prompt in mid-conversation", "the first one stays")
        if case.history:
            case.node.lost("messages that are supposed to have been said before", "left out")
        for turn in case.turns:
            first.turns.append(turn)
        first.vars |= case.vars
        first.tags.extend(tag for tag in case.tags if tag not in first.tags)
        first.placed.extend(item for item in case.placed if item not in first.placed)
        if case.title:
            described.append(case.title)
    thresholds = {case.settings.get("pass_threshold") for case in cases}
    if len(thresholds) > 1:
        first.settings.pop("pass_threshold", None)
        first.node.changed(
            "turns with thresholds of their own", "left out: the whole conversation has one"
        )
    if len(described) > 1:
        first.title = ""
        lines = [f"Turn {number}: {text}" for number, text in enumerate(described, start=1)]
        first.description = "\n".join([first.description, *lines]).strip()
    return first
