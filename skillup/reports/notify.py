"""What a comparison tells other systems: a webhook, a badge, annotations of GitHub Actions."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from skillup.errors import SkillupError
from skillup.history.comparison import Comparison
from skillup.history.gates import GateResult
from skillup.history.runs import RunOutcomes, together
from skillup.load.suites import load_paths
from skillup.reports.past_runs import case_counts, case_notes, comparison_data, gate_name, headline
from skillup.reports.text import one_line, plain
from skillup.store import RunDirectory
from skillup.store.places import is_run

_WAITS = (1.0, 4.0)  # Seconds between the attempts
_TIMEOUT_SECONDS = 10  # Of one read or write
_DEADLINE_SECONDS = 30.0  # Of all: a server may send a byte now and then
_LONGEST_TEXT = 3000  # Slack cuts what is longer than 4,000 characters
_MOST_ANNOTATIONS = 10  # GitHub shows no more of a step


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, of a login page for example."""

    def redirect_request(self, *_: Any) -> None:
        return None


def post(
    url: str,
    payload: Mapping[str, Any],
    mask: Callable[[str], str],
    wait: Callable[[float], object] = time.sleep,
    deadline_seconds: float = _DEADLINE_SECONDS,
) -> str | None:
    """Post `payload` as JSON, masked, with retries; what went wrong, or None. Never raises.

    The message names the server alone: with many services whoever knows the URL may post.
    """
    body = mask(json.dumps(payload, ensure_ascii=False)).encode("utf-8", "replace")
    parts = None
    with suppress(ValueError):
        parts = urlsplit(url)
    if parts is None or parts.scheme not in ("http", "https"):
        return "--webhook: no http:// or https:// URL"
    problems: list[str | None] = [f"no answer in {deadline_seconds:g} s"]
    attempts = Thread(target=lambda: problems.append(_posted(url, body, wait)), daemon=True)
    attempts.start()
    attempts.join(deadline_seconds)
    problem = problems[-1]
    return plain(f"--webhook: {parts.hostname}: {problem}") if problem else None


def _posted(url: str, body: bytes, wait: Callable[[float], object]) -> str | None:
    opener = urllib.request.build_opener(_NoRedirect)
    for pause in (*_WAITS, None):
        try:
            request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
                url, body, {"Content-Type": "application/json; charset=utf-8"}
            )
            with opener.open(request, timeout=_TIMEOUT_SECONDS):
                return None
        except urllib.error.HTTPError as error:
            problem = f"status {error.code}"
            if error.code != 429 and error.code < 500:
                break
        except (OSError, ValueError, HTTPException) as error:
            problem = type(getattr(error, "reason", error)).__name__
        if pause is not None:
            wait(pause)
    return problem


def webhook_payload(
    comparison: Comparison, gates: Sequence[GateResult], format_: str
) -> dict[str, Any]:
    """As `compare --json`, with the cases that changed only; or as Slack reads it."""
    if format_ == "json":
        data = comparison_data(comparison, gates).model_dump(mode="json")
        return {**data, "cases": [case for case in data["cases"] if case["change"] != "same"]}
    failed = [gate for gate in gates if not gate.passed]
    icon = ":red_circle:" if failed else ":large_green_circle:"
    lines = [f"{icon} *skillup {comparison.b.run_id}*", *headline(comparison)]
    lines += [f"gate {gate_name(gate)}: {gate.finding}" for gate in failed]
    # https://docs.slack.dev/messaging/formatting-message-text/#escaping
    text = escape("\n".join(map(plain, lines)), quote=False)
    return {"text": text[:_LONGEST_TEXT]}


def badge_data(comparison: Comparison, gates: Sequence[GateResult]) -> dict[str, Any]:
    """For https://shields.io/badges/endpoint-badge."""
    total = together(case.b for case in comparison.counted)
    red = [case for case in comparison.cases if case.change == "regressed"]
    color = "green" if total.failed else "brightgreen"
    color = color if all(gate.passed for gate in gates) else "red"
    message = f"{len(red)} regressed, " * bool(red) + f"{total.passed}/{total.judged} passed"
    suites = sorted({case.key.suite for case in comparison.counted})
    label = one_line(suites[0], 40) if len(suites) == 1 else "skills"
    return {"schemaVersion": 1, "label": label, "message": message, "color": color}


def error_lines(
    comparison: Comparison, gates: Sequence[GateResult], checkout: Path
) -> Iterator[str]:
    """``::error`` lines of GitHub Actions: the gates that failed, then the cases in their files.

    https://docs.github.com/actions/reference/workflow-commands-for-github-actions
    """
    failed = [gate for gate in gates if not gate.passed]
    if not failed:
        return
    words = "; ".join(f"{gate.gate}: {gate.finding}" for gate in failed)
    yield f"::error::{_escaped(f'skillup: {words}')}"
    cases = {case.key: case for case in comparison.cases}
    keys = dict.fromkeys(key for gate in failed for key in gate.cases)
    shown = [*keys][: _MOST_ANNOTATIONS - 1]
    files = _case_files(comparison.b, {key.suite for key in shown})
    for key in shown:
        file = files.get((key.suite, key.case_id))
        where = _escaped(os.path.relpath(file, checkout), ":,") if file else ""
        text = f"{key.case_id}: {case_counts(cases[key])}; {case_notes(cases[key])}"
        yield f"::error{f' file={where},line=1' if file else ''}::{_escaped(text)}"


def _case_files(run: RunOutcomes, suites: Container[str]) -> dict[tuple[str, str], Path]:
    """By suite and id, the files of the cases of these suites, as far as they are there still."""
    if not is_run(path := Path(run.path)):
        return {}
    with RunDirectory.open(path) as directory:
        about = directory.run_info().get("suites") or {}
    paths = [Path(str(own.get("path"))) for name, own in about.items() if name in suites]
    try:
        loaded = load_paths([path for path in paths if path.is_file()]).suites
    except SkillupError:
        return {}
    return {(suite.name, case.id): case.path for suite in loaded for case in suite.cases}


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return plain(text)
