"""Who may ask: this machine's own browser, on purpose, and nobody through it.

A web page elsewhere can make a browser send requests to loopback, and can have its own name point
there (DNS rebinding). Such requests carry another Host, a foreign Origin, or say that they come
from another site; none of them is answered. The page's path has a secret in it besides, so that
other users of the machine find nothing by trying ports.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlsplit

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_OWN_SITES = ("same-origin", "none")
"""`none`: typed in, from a bookmark, or opened by a program."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What requests to one server must look like."""

    port: int
    token: str

    def refusal(self, headers: Message) -> str | None:
        """Why a request with these headers is not answered; None: it may be."""
        hosts = headers.get_all("Host") or []
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return "this server answers to 127.0.0.1 and localhost only"
        for origin in headers.get_all("Origin") or []:
            scheme, host = urlsplit_or_nothing(origin)
            if scheme != "http" or not self._is_own(host):
                return "requests from other sites are not answered"
        for site in headers.get_all("Sec-Fetch-Site") or []:
            if site.strip().lower() not in _OWN_SITES:
                return "requests from other sites are not answered"
        return None

    def inner_path(self, target: str) -> str | None:
        """What comes after the secret in the path of a request; None: the secret is not there.

        ``/SECRET/api/runs?x=1`` → ``api/runs``.
        """
        path = target.partition("?")[0].partition("#")[0]
        if not path.startswith("/"):
            return None
        first, slash, rest = path[1:].partition("/")
        if not slash or not hmac.compare_digest(first.encode(), self.token.encode()):
            return None
        return rest

    def _is_own(self, host: str) -> bool:
        name, colon, port = host.strip().lower().rpartition(":")
        if not colon or (host.endswith("]") and name.startswith("[")):
            name, port = host.strip().lower(), "80"
        return name in _NAMES and port == str(self.port)


def urlsplit_or_nothing(origin: str) -> tuple[str, str]:
    """Scheme and host of an Origin; empty for what is none (``null``)."""
    try:
        parts = urlsplit(origin.strip())
    except ValueError:
        return "", ""
    return parts.scheme, "" if parts.path or parts.query else parts.netloc
