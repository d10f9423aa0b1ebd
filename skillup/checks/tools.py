"""Checks of which tools the agent called."""

from __future__ import annotations

from skillup.checks.context import Subject
from skillup.checks.evidence import listed
from skillup.checks.finding import Finding
from skillup.checks.sequences import first_out_of_order, first_unlike, unpaired
from skillup.checks.tool_calls import CallMatcher, show_call, show_calls
from skillup.checks.values import shown
from skillup.schema.check_specs import ToolCount, ToolMatch, ToolSequence


def tool_called(spec: ToolCount, subject: Subject) -> Finding:
    """A tool was called, as often as wanted: at least once, unless the check says otherwise."""
    matcher = CallMatcher(subject)
    calls = subject.calls
    hits = [call for call in calls if matcher.matches(spec, call)]
    least = spec.min if spec.min is not None else int(spec.max != 0)
    passed = least <= len(hits) and (spec.max is None or len(hits) <= spec.max)
    if hits:
        return Finding(passed, f"{_times(len(hits))}", matcher.excerpt(spec, hits[0]))
    similar = [call for call in calls if matcher.is_meant(spec, call)]
    if similar and spec.args:
        return Finding(passed, "called, but with other arguments", show_calls(similar))
    return Finding(passed, "not called", show_calls(calls))


def tool_not_called(spec: ToolMatch, subject: Subject) -> Finding:
    """No such call was made."""
    matcher = CallMatcher(subject)
    calls = subject.calls
    hits = [call for call in calls if matcher.matches(spec, call)]
    if hits:
        return Finding(False, _times(len(hits)), matcher.excerpt(spec, hits[0]))
    return Finding(True, "not called", show_calls(calls))


def _times(count: int) -> str:
    return "called once" if count == 1 else f"called {count} times"


def tool_sequence(spec: ToolSequence, subject: Subject) -> Finding:
    """Tools were called in an order (or, with `any_order`, each by a call of its own)."""
    matcher = CallMatcher(subject)
    calls = subject.calls
    made = show_calls(calls)
    if spec.mode == "any_order":
        left = unpaired(spec.calls, calls, matcher.matches)
        if left:
            wanted = listed(show_match(spec.calls[index]) for index in left)
            return Finding(False, f"no call for {wanted}", made)
        return Finding(True, "every call was made", made)
    if spec.mode == "exact":
        at = first_unlike(spec.calls, calls, matcher.matches)
        if at is None:
            return Finding(True, "exactly these calls were made", made)
        if at >= len(spec.calls):
            return Finding(False, f"call {at + 1} is one too many: {show_call(calls[at])}", made)
        instead = show_call(calls[at]) if at < len(calls) else "no further call"
        return Finding(False, f"call {at + 1} is not {show_match(spec.calls[at])}: {instead}", made)
    at = first_out_of_order(spec.calls, calls, matcher.matches)
    if at is None:
        return Finding(True, "called in this order", made)
    after = f" after {show_match(spec.calls[at - 1])}" if at else ""
    return Finding(False, f"{show_match(spec.calls[at])} was not called{after}", made)


def show_match(match: ToolMatch) -> str:
    """``shell args.command ~ /rm/``: a wanted call in one line."""
    named = [part for part in (match.name, match.kind) if part]
    for path, wanted in match.args.items():
        where = f"args.{path}"
        if "equals" in wanted.model_fields_set:
            named.append(f"{where} = {shown(wanted.equals)}")
        if wanted.contains is not None:
            named.append(f"{where} has {shown(wanted.contains)}")
        if wanted.matches is not None:
            named.append(f"{where} ~ /{wanted.matches}/")
        if wanted.exists is not None:
            named.append(f"{where} {'exists' if wanted.exists else 'is absent'}")
    return " ".join(named)
