"""Webhooks, badges and annotations of a comparison."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from skillup.history.gates import check_gates, gates_by_suite
from skillup.redaction.secrets import Secrets
from skillup.reports.notify import badge_data, error_lines, post, webhook_payload
from skillup.store.files import no_mask
from tests.support.answering import answering
from tests.support.outcomes import Cases, a_run, compared_with

BEFORE: Cases = {"asks": "p" * 20, "greets": "p" * 20}


@contextmanager
def a_server(*statuses: int) -> Iterator[tuple[str, list[str]]]:
    """Its address, and the bodies that it got; it answers with these, one after another."""
    bodies: list[str] = []

    def answer(_: object, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        bodies.append(body.decode())
        return statuses[len(bodies) - 1], b"", {"Location": "/login"}

    with answering(answer) as url:
        yield f"{url}/hook-s3cret", bodies


@pytest.mark.parametrize(
    ("statuses", "problem"),
    [
        ((200,), None),
        ((500, 429, 204), None),
        ((503, 503, 503), "--webhook: 127.0.0.1: status 503"),
        ((404,), "--webhook: 127.0.0.1: status 404"),
        ((302,), "--webhook: 127.0.0.1: status 302"),
    ],
)
def test_a_webhook_is_retried_and_its_trouble_is_a_line_without_its_url(
    statuses: tuple[int, ...], problem: str | None
) -> None:
    waited: list[float] = []
    mask = Secrets({"API_KEY": "sk-very-secret-1"}).mask
    with a_server(*statuses) as (url, bodies):
        assert post(url, {"text": "it said sk-very-secret-1"}, mask, waited.append) == problem
    assert len(bodies) == len(statuses)
    assert len(waited) == len(statuses) - 1
    assert json.loads(bodies[0]) == {"text": "it said ***API_KEY***"}


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/x", "file:///etc/passwd", "nothing", "http://["]
)
def test_a_url_that_is_none_is_a_line(url: str) -> None:
    assert (post(url, {}, no_mask, lambda _: None) or "").startswith("--webhook: ")


def test_a_server_that_answers_a_byte_now_and_then_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with server.accept()[0] as connection, suppress(OSError):
                while True:
                    connection.sendall(b"X")
                    time.sleep(0.1)

        Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        begun = time.monotonic()
        problem = post(url, {}, no_mask, deadline_seconds=0.5)
        assert problem == "--webhook: 127.0.0.1: no answer in 0.5 s"
        assert time.monotonic() - begun < 5


def test_what_is_told() -> None:
    b = a_run("night", {"asks": "ffff", "greets": "pppp", "<!channel> & co": "e"})
    comparison = compared_with([a_run("before", BEFORE)], b)
    gates = check_gates(comparison, gates_by_suite(b, {}))

    data = webhook_payload(comparison, gates, "json")
    assert data["schema_version"] == "skillup.comparison/2"
    assert {case["case_id"] for case in data["cases"]} == {"asks", "<!channel> & co"}
    assert not data["gates_passed"]

    text = webhook_payload(comparison, gates, "slack")["text"]
    assert text.startswith(":red_circle: *skillup night*\n1 case regressed (asks); ")
    assert "\ngate max_errors (demo): 1 trials with an ERROR" in text
    assert "<" not in text

    assert badge_data(comparison, gates) == {
        "schemaVersion": 1,
        "label": "demo",
        "message": "1 regressed, 4/8 passed",
        "color": "red",
    }
    first, *lines = error_lines(comparison, gates, Path("/repo"))
    assert first.startswith("::error::skillup: max_new_failures: 1 regressed; ")
    assert [line.partition(":: ")[0].split(": ")[0] for line in lines] == [
        "::error::asks",
        "::error::<!channel> & co",
    ]
    assert not list(error_lines(comparison, [], Path("/repo")))


def test_a_quiet_night_is_green() -> None:
    comparison = compared_with(
        [a_run("a", BEFORE)], b := a_run("b", {"asks": "pp", "greets": "pp"})
    )
    gates = check_gates(comparison, gates_by_suite(b, {}))
    assert badge_data(comparison, gates)["color"] == "brightgreen"
    assert webhook_payload(comparison, gates, "slack")["text"].startswith(":large_green_circle:")
    assert not list(error_lines(comparison, gates, Path()))
