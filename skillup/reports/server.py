"""The server of `skillup view` and `skillup label`: HTTP on loopback.

`view` is for reading only: the page, data as JSON (and a stamp of it, by which the page sees that
something changed), raw files of a run as plain text. What `label` saves is posted as JSON.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from skillup.dataclass import frozen
from skillup.errors import RunDirectoryError, SkillupError, UsageError
from skillup.reports.html.build import compared_lines, history_data, page_html, sides_of
from skillup.reports.html.detail import WIDE
from skillup.reports.html.page_data import PageIndex
from skillup.reports.html.run_data import PAGE_VERSION, RunData, run_stamp
from skillup.store import RunDirectory
from skillup.store.files import no_mask, to_json
from skillup.store.places import RESULT_FILE, RUN_FILE, is_being_written

ADDRESS = "127.0.0.1"
USUAL_PORT = 7575
_NAMES = (ADDRESS, "localhost", "[::1]")
_OWN_SITES = ("same-origin", "none")  # `none`: typed in, from a bookmark, or opened by a program
_PATIENCE = 5  # Seconds that a connection may be silent within a request, or between two
_LONGEST_POST = 100_000  # Bytes
_RUN = re.compile(r"api/runs/(?P<run>[^/]+)/(?P<rest>.+)", re.DOTALL)
_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
# The page says more of its own in itself; what is here holds for everything.
_PAGE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
_STATUSES = ("PASS", "FAIL", "ERROR", "SKIP")
Json = dict[str, Any]


class NotServedError(Exception):
    """There is no such run or file to serve; why is nobody's business."""


class Served:
    """The runs of one folder. All methods may be called from several threads."""

    def __init__(self, folder: Path, only: str | None = None, index: str | None = None) -> None:
        """`only`: the one run of the folder to serve. `index`: of past runs, as ``--index``."""
        self.folder = folder.absolute()
        self.only = only
        self._index = index
        self._open: dict[str, RunData] = {}
        self._entries: dict[str, tuple[object, Json]] = {}
        self._lock = threading.Lock()

    def ids(self) -> list[str]:
        if self.only is not None:
            return [self.only] if (self.folder / self.only).is_dir() else []
        try:
            found = [path.name for path in self.folder.iterdir() if (path / RUN_FILE).is_file()]
        except OSError:
            return []
        return sorted(found, reverse=True)

    def path(self, run_id: str) -> Path:
        if run_id not in self.ids():
            raise NotServedError
        return self.folder / run_id

    def listing(self) -> Json:
        """Every run in a few words, those that cannot be read as damaged."""
        runs = []
        with self._lock:
            for run_id in self.ids():
                stamp = run_stamp(self.folder / run_id)
                known = self._entries.get(run_id)
                if known is None or known[0] != stamp:
                    known = self._entries[run_id] = (stamp, {"id": run_id, **self._entry(run_id)})
                runs.append(known[1])
        runs.sort(key=lambda run: (run["started_at"] or "", run["id"]), reverse=True)
        return {"folder": str(self.folder), "runs": runs}

    def index(self, run_id: str, against: str | None = None) -> PageIndex:
        """The page's index. Raises NotServedError; RunDirectoryError for a run that is damaged."""
        with self._lock:
            data, sides = self._run(run_id), None
            if against is not None and against != run_id:
                other = self._run(against)
                sides = sides_of(other, data, shift=len(data.rows), index=self._index)
            history = None if data.running else history_data(data.path, self._index)
            lines = [] if data.running or sides else compared_lines(data.path, self._index)
            return data.index("view", history, sides, lines)

    def detail(self, run_id: str, n: int, against: str | None = None) -> Json:
        """One trial; those of `against` come after the run's own. As :meth:`index`."""
        with self._lock:
            data = self._run(run_id)
            shift = len(data.rows)
            if n <= shift or against is None:
                return data.detail(n, WIDE)
            return self._run(against).detail(n - shift, WIDE, shift=shift)

    def file(self, run_id: str, job: str, name: str) -> bytes:
        """A file of a trial. Raises NotServedError."""
        with self._lock, RunDirectory.open(self.path(run_id)) as run:
            read = run.trial_files(job).get(name)
            if read is None:
                raise NotServedError
            return b"".join(read())

    def close(self) -> None:
        """Nobody reads any more: a thread that is at it while Python ends can crash the process."""
        self._lock.acquire(timeout=_PATIENCE)

    def stamp(self, run_id: str) -> object:
        """Differs when the run's page would. As :meth:`index`."""
        with self._lock:
            return self._run(run_id).stamp

    def folder_stamp(self) -> object:
        return [(run_id, run_stamp(self.folder / run_id)) for run_id in self.ids()]

    def _run(self, run_id: str) -> RunData:
        """The run as it is now. Raises RunDirectoryError if it cannot be read any more."""
        path, data = self.path(run_id), self._open.pop(run_id, None)
        if data is None:  # of what was read in part, nothing stays
            name = quote(path.name, safe="", errors="surrogateescape")
            data = RunData(path, base=f"api/runs/{name}/files/")
        data.read()
        self._open[run_id] = data
        return data

    def _entry(self, run_id: str) -> Json:
        """An entry of the list; what is not known of a run that cannot be read stays empty."""
        path, info, summary = self.folder / run_id, dict[str, Any](), dict[str, Any]()
        known = {"run_id": run_id, "started_at": None, "status": "damaged", "problem": None}
        try:
            if not is_being_written(path) and (path / RESULT_FILE).is_file():
                with RunDirectory.open(path) as directory:
                    result, info = directory.read_result(cases=False), directory.run_info()
                summary = result.summary.model_dump(mode="json", by_alias=True)
                known |= {"run_id": result.run_id, "started_at": result.started_at}
                known["status"] = "finished" if result.finished else "unfinished"
            else:  # What nobody writes is not kept open: there may be hundreds.
                data = self._run(run_id) if is_being_written(path) else RunData(path)
                info, summary = data.info, data.summary()
                known |= {"run_id": data.run_id, "started_at": data.started_at}
                known["status"] = "running" if data.running else "unfinished"
        except SkillupError as error:
            known["problem"] = error.message
        except Exception as defect:  # noqa: BLE001 - one odd run must not hide the others
            known["problem"] = f"it cannot be read: {type(defect).__name__}: {defect}"
        baseline = summary.get("baseline") or {}
        return {
            **known,
            "suites": list(info.get("suites") or ()),
            "engines": list(info.get("profiles") or ()),
            "planned": len(info.get("jobs") or ()),
            # Verdicts are those with the skill; how far the run is, all trials say.
            "done": (summary.get("total") or 0) + (baseline.get("total") or 0),
            "counts": {status: summary.get(status.lower()) or 0 for status in _STATUSES},
            **{name: summary.get(name) for name in ("pass_rate", "duration_ms", "cost_usd")},
        }


# Who may ask: this machine's own browser, on purpose, and nobody through it.


@frozen
class Guard:
    port: int
    token: str

    def refusal(self, headers: Message) -> str | None:
        """Why a request is not answered; None: it may be."""
        hosts, origins, sites = (
            [value.strip().lower() for value in headers.get_all(name) or ()]
            for name in ("Host", "Origin", "Sec-Fetch-Site")
        )
        own = {f"{name}:{self.port}" for name in _NAMES}
        if len(hosts) != 1 or hosts[0] not in own:
            return "this server answers to 127.0.0.1 and localhost only"
        if not {*origins} <= {f"http://{one}" for one in own} or not {*sites} <= {*_OWN_SITES}:
            return "requests from other sites are not answered"
        return None

    def inner_path(self, target: str) -> str | None:
        """``/SECRET/api/runs?x=1`` → ``api/runs``; None: the secret is not there."""
        path = target.partition("?")[0].partition("#")[0]
        first, slash, rest = path[1:].partition("/")
        known = hmac.compare_digest(first.encode(), self.token.encode())
        return rest if path.startswith("/") and slash and known else None


@frozen
class Answer:
    status: int
    kind: str
    body: bytes


Pages = Callable[[str, dict[str, list[str]], bytes | None], Answer]
"""By path, query and what was posted (None: nothing). Raises NotServedError, SkillupError."""


def _answer_to(pages: Pages, path: str, query: str, body: bytes | None) -> Answer:
    """It never raises."""
    try:
        return pages(path, parse_qs(query), body)
    except NotServedError:
        return _error(404, "there is nothing here")
    except SkillupError as error:
        status = 409 if isinstance(error, RunDirectoryError) else 404
        return _error(status, error.message, error.hint)
    except Exception as defect:  # noqa: BLE001 - the page shows it; the server goes on
        return _error(500, f"it cannot be shown: {type(defect).__name__}: {defect}")


def view_pages(served: Served, first: str | None = None) -> Pages:
    """`first`: the run to show at once; None: the list."""

    def pages(path: str, query: dict[str, list[str]], _: bytes | None) -> Answer:
        if path == "":
            folder = str(served.folder)
            index = {"schema": PAGE_VERSION, "mode": "view", "folder": folder, "open": first}
            return Answer(200, "text/html; charset=utf-8", page_html(index, {}, title="skillup"))
        if path == "api/runs":
            return json_answer(served.listing())
        if path == "api/stamp":
            return _stamp_answer(served.folder_stamp())
        match = _RUN.fullmatch(path)
        if match is None:
            raise NotServedError
        run, rest = unquote(match["run"], errors="surrogateescape"), match["rest"]
        against = next(iter(query.get("against", [])), None)
        if rest == "index.json":
            return json_answer(served.index(run, against))
        if rest == "stamp":
            return _stamp_answer(served.stamp(run))
        if rest.startswith("files/"):
            job, __, name = rest.removeprefix("files/").partition("/")
            data = served.file(run, unquote(job), unquote(name))
            # As plain text, whatever its name says it is.
            return Answer(200, "text/plain; charset=utf-8", data)
        trial = re.fullmatch(r"trials/([0-9]{1,9})\.json", rest)
        if trial is None:
            raise NotServedError
        return json_answer(served.detail(run, int(trial[1]), against))

    return pages


def json_answer(value: Mapping[str, Any], status: int = 200) -> Answer:
    body = to_json(value, no_mask, indent=None)
    return Answer(status, "application/json; charset=utf-8", body)


def _stamp_answer(stamp: object) -> Answer:
    return json_answer({"stamp": hashlib.sha256(repr(stamp).encode()).hexdigest()})


def _error(status: int, message: str, hint: str | None = None) -> Answer:
    return json_answer({"error": message, "hint": hint}, status)


class LoopbackServer(ThreadingHTTPServer):
    """Serves until it is closed; connections that are open do not keep it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128  # the library's 5 makes a browser with a few tabs wait seconds

    def __init__(self, pages: Pages, port: int | None, *, writes: bool = False) -> None:
        """`port`: None: the usual one, or any. Raises UsageError for one that cannot be had."""
        self.pages, self.writes = pages, writes
        try:
            super().__init__((ADDRESS, USUAL_PORT if port is None else port), _Handler)
        except OSError as error:
            if port is not None:
                why = (error.strerror or str(error)).lower()
                hint = "choose another one, or leave --port out"
                raise UsageError(f"--port {port}: {why}", hint=hint) from None
            super().__init__((ADDRESS, 0), _Handler)
        self.guard = Guard(self.server_port, secrets.token_urlsafe(12))

    @property
    def url(self) -> str:
        """What to open: the secret is in it."""
        return f"http://{ADDRESS}:{self.server_port}/{self.guard.token}/"

    def serve(self, *, open_browser: bool) -> None:
        """Until Ctrl-C."""
        sys.stdout.write(f"{self.url}\n")
        sys.stdout.flush()
        # A desktop whose browser can come up.
        display = any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
        if open_browser and (sys.platform == "darwin" or display):
            threading.Thread(target=webbrowser.open, args=(self.url,), daemon=True).start()
        usual = signal.getsignal(signal.SIGINT)
        if usual is signal.default_int_handler:
            # An exception in the midst of the library's work was lost there now and then.
            signal.signal(signal.SIGINT, lambda *_: threading.Thread(target=self.shutdown).start())
        self.serve_forever(poll_interval=0.2)
        self.server_close()
        signal.signal(signal.SIGINT, usual)

    def server_bind(self) -> None:
        """Without asking a name server what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone is no news."""


class _Handler(BaseHTTPRequestHandler):
    """One request for each connection, which is closed after it: what else it sent is not read."""

    server: LoopbackServer
    server_version = "skillup"
    sys_version = ""
    timeout = _PATIENCE

    def do_POST(self) -> None:
        """Of JSON only: a form of another site could not send that unasked."""
        length = self.headers.get("Content-Length", "")
        if not self.server.writes:
            self._send(_error(405, "this server is for reading only"))
        elif self.headers.get_content_type() != "application/json":
            self._send(_error(415, "write application/json"))
        elif not length.isdecimal() or int(length) > _LONGEST_POST:
            self._send(_error(413, "that is too long"))
        else:
            self._answer(self.rfile.read(int(length)))

    def do_GET(self) -> None:
        self._answer(None)

    def _answer(self, body: bytes | None) -> None:
        server = self.server
        refusal, path = server.guard.refusal(self.headers), server.guard.inner_path(self.path)
        if refusal is not None:
            self._send(_error(403, refusal))
        elif path is None:
            self._send(_error(404, "open the address that skillup printed"))
        else:
            self._send(_answer_to(server.pages, path, self.path.partition("?")[2], body))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        policy = _PAGE_POLICY if answer.kind.startswith("text/html") else _DATA_POLICY
        own = (("Content-Type", answer.kind), ("Content-Security-Policy", policy))
        length = ("Content-Length", str(len(answer.body)))
        for name, value in (*own, length, *_HEADERS):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def send_error(self, code: int, *_: Any, **__: Any) -> None:
        """What is no HTTP, or another method: nothing of it is sent back."""
        if getattr(self, "command", None) is None:
            self.command, self.request_version = "GET", "HTTP/1.0"
        self._send(_error(code, "this is no request that is answered"))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Nothing: people look at the page, not at its log."""
