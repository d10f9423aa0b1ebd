"""Which requests the server of `skillup view` answers at all."""

from __future__ import annotations

from email.message import Message

import pytest

from skillup.reports.server.server import Guard

GUARD = Guard(7575, "secret")


def headers(*given: tuple[str, str]) -> Message:
    """A request's headers."""
    message = Message()
    for name, value in given:
        message[name] = value
    return message


@pytest.mark.parametrize(
    "host", ["127.0.0.1:7575", "localhost:7575", "LOCALHOST:7575", "[::1]:7575"]
)
def test_this_machines_own_names_are_answered(host: str) -> None:
    assert GUARD.refusal(headers(("Host", host))) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:7575",
        "127.0.0.1",
        "localhost",
        "localhost:7576",
        "localhost:7575.evil.example",
        "localhost.evil.example:7575",
        "127.0.0.1:7575@evil.example",
        "evil.example@127.0.0.1:7575",
        "127.0.0.2:7575",
        "0.0.0.0:7575",
        "[::1]",
        "[::]:7575",
        "::1:7575",
        "localhost:07575",
        "localhost:",
        ":7575",
        "",
        "localhost:7575, evil.example",
        "2130706433:7575",
        "localhost.:7575",
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    assert GUARD.refusal(headers(("Host", host))) is not None


def test_a_host_has_to_be_named_once() -> None:
    assert GUARD.refusal(headers()) is not None
    twice = headers(("Host", "127.0.0.1:7575"), ("Host", "evil.example"))
    assert GUARD.refusal(twice) is not None


def test_port_80_may_be_left_out() -> None:
    assert Guard(80, "x").refusal(headers(("Host", "localhost"))) is None
    assert Guard(80, "x").refusal(headers(("Host", "[::1]"))) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "http://evil.example"),
        ("Origin", "http://evil.example:7575"),
        ("Origin", "https://127.0.0.1:7575"),
        ("Origin", "http://127.0.0.1:8000"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:7575/path"),
        ("Origin", "http://[bad"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "anything"),
    ],
)
def test_what_comes_from_another_site_is_refused(name: str, value: str) -> None:
    assert GUARD.refusal(headers(("Host", "127.0.0.1:7575"), (name, value))) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "http://127.0.0.1:7575"),
        ("Origin", "http://localhost:7575"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Sec-Fetch-Site", "none"),
    ],
)
def test_the_page_itself_is_answered(name: str, value: str) -> None:
    assert GUARD.refusal(headers(("Host", "127.0.0.1:7575"), (name, value))) is None


def test_the_secret_is_the_first_part_of_the_path() -> None:
    assert GUARD.inner_path("/secret/") == ""
    assert GUARD.inner_path("/secret/api/runs?x=1#y") == "api/runs"
    for wrong in ("/", "/secret", "/SECRET/", "/secre/t", "//secret/", "http://x/secret/", "*", ""):
        assert GUARD.inner_path(wrong) is None
