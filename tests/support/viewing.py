"""`skillup view`, running, and asked as a browser would ask it, or as one should not."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from subprocess import Popen
from typing import Any
from urllib.parse import urlsplit

from tests.support.project import Project

PATIENCE = 30


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Viewer:
    url: str
    process: Popen[str]

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    @property
    def path(self) -> str:
        """The secret, with slashes around it."""
        return urlsplit(self.url).path

    def get(self, path: str = "", **more: Any) -> Reply:
        """Ask for a path below the secret, as it is."""
        return self.ask(self.path + path, **more)

    def ask(
        self, target: str, *, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """One request; `target` and `headers` go out as they are given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


@contextmanager
def viewing(
    project: Project, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[Viewer]:
    """`skillup view --port 0 ARGUMENTS` in the project."""
    with project.start("view", "--port", "0", "--no-open", *arguments, env=env) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        yield Viewer(url, process)
