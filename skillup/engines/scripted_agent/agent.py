"""One turn of the agent, from its arguments to its result."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

from skillup.engines.scripted_agent import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than a turn takes
    from typing import Any

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# Only these forms are touched: other texts in double braces are somebody else's templates.
# `skillup/schema/profile.py` lists them.
_FORMS = re.compile(
    r"\{\{(user|system|skills|output|turn|match\.\w+|remember\.[A-Za-z_][\w.-]*"
    r"|(?:turns|history)\.\d+\.(?:user|answer))\}\}"
)


class AgentError(Exception):
    """Ends a turn without an answer: ``kind, message`` of the result event."""


class AgentSession:
    """What one session file says, and the way to add to it.

    `exchanges` and `history` (what was seeded) are lists of ``[user, answer or None]``. The file
    has one JSON object a line: first ``{"type": "session", "session_id", "agent_version",
    "workspace"}``; ``{"type": "user", "turn", "text"}`` begins a turn and ``{"type": "answer",
    "turn", "text"}`` ends it; ``{"type": "remember", "values": {name: text}}`` stands between.
    Those with ``"seeded": true`` took place before the session and are not counted as turns.
    """

    def __init__(self, home: str, session_id: str) -> None:
        if not _ID.fullmatch(session_id):  # it becomes a file name: nothing may lead elsewhere
            raise AgentError("session_lost", f"{session_id!r} cannot be a session's id")
        self.id = session_id
        self.path = os.path.join(home, "sessions", f"{session_id}.jsonl")
        self.exchanges: list[list[Any]] = []
        self.history: list[list[Any]] = []
        self.remembered: dict[str, str] = {}

    def create(self, mode: str = "x") -> AgentSession:
        """Begins the file; ``session_mismatch`` if there is one of that name."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        header = {"type": "session", "session_id": self.id, "agent_version": VERSION}
        try:
            with open(self.path, mode, encoding="ascii") as file:
                file.write(json.dumps({**header, "workspace": os.getcwd()}) + "\n")
        except FileExistsError:
            raise AgentError("session_mismatch", f"session {self.id} exists already") from None
        return self

    def load(self) -> AgentSession:
        """Reads the file; ``session_lost`` if it is missing or damaged."""
        try:
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    self._take(json.loads(line))
        except FileNotFoundError:
            raise AgentError("session_lost", f"there is no session {self.id}") from None
        except (OSError, ValueError, LookupError) as error:
            raise AgentError("session_lost", f"session {self.id} cannot be read: {error}") from None
        return self

    def add(self, kind: str, **fields: Any) -> None:
        """Appends one entry."""
        entry = {"type": kind, **fields}
        with open(self.path, "a", encoding="ascii") as file:
            file.write(json.dumps(entry) + "\n")
            if kind == "answer":
                file.flush()
                os.fsync(file.fileno())
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        exchanges = self.history if entry.get("seeded") else self.exchanges
        if entry["type"] == "user":
            exchanges.append([entry["text"], None])
        elif entry["type"] == "answer" and exchanges:  # a history may begin with the agent
            exchanges[-1][1] = entry["text"]
        elif entry["type"] == "remember":
            self.remembered.update(entry["values"])

    def placeholders(self) -> dict[str, str]:
        """By what stands in the braces, as the session is now."""
        values = {f"remember.{name}": text for name, text in self.remembered.items()}
        for where, exchanges in (("turns", self.exchanges), ("history", self.history)):
            for number, (user, answer) in enumerate(exchanges, start=1):
                values[f"{where}.{number}.user"] = user
                if answer is not None:
                    values[f"{where}.{number}.answer"] = answer
        return values


_TOOLS = (("run", "shell", "command"), ("read", "read_file", "path"), ("skill", "skill", "skill"))
_REFUSED_UNDER = {"write_file": ("read_only",), "shell": ("read_only", "edits")}

_USAGE = "usage: scripted-agent --script=FILE --home=DIR (--session-id=ID | --resume=ID) < message"
_FOR_A_NEW_SESSION = ["--home", "--script", "--session-id"]


def main() -> int:
    """Runs one turn; returns the exit code."""
    options = dict(argument.partition("=")[::2] for argument in sys.argv[1:])
    if sorted(options) not in (["--home", "--resume", "--script"], _FOR_A_NEW_SESSION):
        sys.stderr.write(f"{_USAGE}; given: {' '.join(options)}\n")
        return 2
    turn = AgentTurn(options)
    try:
        turn.run(sys.stdin.buffer.read().decode("utf-8", "replace"))
    except AgentError as error:
        kind, message = error.args
        turn.result("", {"kind": kind, "message": message})
        return 1
    except KeyboardInterrupt:
        if turn.shell_group is not None:
            os.killpg(turn.shell_group, signal.SIGKILL)
        return 130
    return 0


class AgentTurn:
    """One turn: each tool call, and the answer, is a request to the "model"."""

    def __init__(self, options: dict[str, str]) -> None:
        self.home, script_file = options["--home"], options["--script"]
        self.skills = _installed_skills()
        self.resumes = "--resume" in options
        self.session_id = options["--resume" if self.resumes else "--session-id"]
        self.shell_group: int | None = None  # The process group of the command that is running
        self._garbled = False
        self._requests = 0
        try:
            with open(script_file, encoding="utf-8") as file:
                script: dict[str, Any] = json.load(file)
            self._replies: list[dict[str, Any]] = script["replies"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            sys.stderr.write(f"scripted-agent: {script_file} is not a script: {error!r}\n")
            sys.exit(2)
        self._script = script
        self._permission: str = script.get("permission", "full")
        self._attempt: int = script.get("attempt", 1)

    def run(self, message: str) -> None:
        """Raises AgentError if the turn ends without an answer."""
        session = AgentSession(self.home, self.session_id)
        session = session.load() if self.resumes else session.create()
        number = len(session.exchanges) + 1
        reply, match = self._reply(message, number)
        faults = reply.get("misbehave") or {}
        is_over = faults.get("times") is not None and self._attempt > faults["times"]
        if is_over or not self._drawn(faults.get("probability", 1.0), number, "fault"):
            faults = {}
        if faults.get("forget"):
            session = AgentSession(self.home, session.id).create("w")
        if faults.get("new_session"):
            import uuid

            session = AgentSession(self.home, str(uuid.uuid4())).create()
        self.session, self.session_id = session, session.id
        number = len(session.exchanges) + 1
        self.event(
            "session_started",
            session_id=session.id,
            agent_version=VERSION,
            model=self._script.get("model", "scripted"),
            permission=self._permission,
            turn=number,
            skills=list(self.skills),
        )
        if not reply:
            shown = message if len(message) <= 200 else message[:200] + "…"
            what = f'no reply of the script applies to turn {number}: "{shown}"'
            raise AgentError("script", what)
        self.values = {"user": message, "turn": str(number), "skills": ", ".join(self.skills)}
        self.values |= {"system": self._script.get("system", ""), **session.placeholders()}
        if match is not None:
            named = {f"match.{name}": text or "" for name, text in match.groupdict().items()}
            self.values |= {f"match.{n}": match[n] or "" for n in range(match.re.groups + 1)}
            self.values |= named
        session.add("user", turn=number, text=message)
        self._fail_at_start(faults)
        for step in reply.get("steps", ()):
            self._step(step)
        _fail_before_answer(faults)
        answer = self._filled(reply.get("say", ""))
        self._count()
        if answer:
            self.event("message", text=answer)
        session.add("answer", turn=len(session.exchanges), text=answer)
        self.event("usage", **reply.get("usage", {}), requests=self._requests)
        self.result(answer, None)

    def _reply(self, message: str, turn: int) -> tuple[dict[str, Any], re.Match[str] | None]:
        """The first reply that applies, and what its `when` found; an empty one if none does."""
        for index, reply in enumerate(self._replies):
            skill, pattern = reply.get("needs_skill"), reply.get("when")
            if reply.get("turn") in (None, turn) and skill in (None, *self.skills):
                match = re.search(pattern, message, re.IGNORECASE) if pattern else None
                chance = reply.get("probability", 1.0)
                if (match or not pattern) and self._drawn(chance, turn, f"reply {index}"):
                    return reply, match
        return {}, None

    def _drawn(self, probability: float, turn: int, what: str) -> bool:
        """Chance that can be repeated: the same seed, attempt and turn always draw the same."""
        if probability >= 1:
            return True
        import hashlib

        lot = f"{self._script.get('seed', 0)}/{self._attempt}/{turn}/{what}"
        digest = hashlib.sha256(lot.encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64 < probability

    def _filled(self, text: str) -> str:
        """Raises AgentError `script` if a placeholder in `text` has no value."""

        def value(found: re.Match[str]) -> str:
            if found[1] not in self.values:
                why = "no such turn, group, output or memory in this session"
                raise AgentError("script", f"{found[0]} has no value: {why}")
            return self.values[found[1]]

        return _FORMS.sub(value, text)

    def event(self, kind: str, **fields: Any) -> None:
        """One line. Escaped to ASCII, so that neither locale nor lone surrogates can break it."""
        line = json.dumps({"type": kind, **fields})
        if self._garbled:
            # The last brace has lost its partner, so this can never be JSON by accident.
            line = line[len(line) // 2 :]
        sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.buffer.flush()

    def result(self, answer: str, error: dict[str, str] | None) -> None:
        """The last event."""
        fields = {"session_id": self.session_id, "answer": answer}
        self.event("result", **fields, is_error=error is not None, error=error)

    def _count(self) -> None:
        limit = self._script.get("max_turns")
        if limit is not None and self._requests >= limit:
            raise AgentError("max_turns", f"the limit of {limit} steps was reached")
        self._requests += 1

    def _step(self, step: dict[str, Any]) -> None:
        fill = self._filled
        if step.get("say"):
            self.event("message", text=fill(step["say"]))
        elif step.get("write"):
            self._use("write_file", **{name: fill(text) for name, text in step["write"].items()})
        elif step.get("remember"):
            values = {name: fill(value) for name, value in step["remember"].items()}
            self.session.add("remember", values=values)
            self.values |= {f"remember.{name}": value for name, value in values.items()}
        elif step.get("delay"):
            time.sleep(step["delay"])
        for name, tool, argument in _TOOLS:
            if step.get(name):
                self._use(tool, **{argument: fill(step[name])})

    def _use(self, name: str, **arguments: str) -> None:
        self._count()
        call_id = f"call_{len(self.session.exchanges)}_{self._requests}"
        self.event("tool_call", id=call_id, name=name, input=arguments)
        status = "success"
        try:
            if self._permission in _REFUSED_UNDER.get(name, ()):
                raise ValueError(f"{name} is not permitted: the permission is {self._permission}")
            output = self._tool(name, arguments)
        except OSError as error:
            subject = arguments.get("path", error.filename)
            status, output = "error", f"{subject}: {error.strerror or error}"
        except ValueError as error:  # also of a NUL byte in a path or a command
            status, output = "error", str(error)
        if name != "write_file":
            self.values["output"] = output
        self.event("tool_result", id=call_id, status=status, output=output)

    def _tool(self, name: str, arguments: dict[str, str]) -> str:
        """Raises OSError or ValueError if it cannot be done: the agent is told and goes on."""
        if name == "shell":
            return self._shell(arguments["command"])
        if name == "read_file":
            return _text(arguments["path"])
        if name == "skill":
            skill = arguments["skill"]
            if skill in self.skills:
                return _text(self.skills[skill])
            known = ", ".join(self.skills) or "none"
            raise ValueError(f"no skill {skill} is installed (installed: {known})")
        path = arguments["path"]
        target = os.path.realpath(path)
        inside = target.startswith(os.path.join(os.path.realpath("."), ""))
        if self._permission != "full" and not inside:
            raise ValueError(f"{path} is outside the workspace")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(arguments["content"])
        return f"wrote {path}"

    def _shell(self, command: str) -> str:
        """Runs a command in a session of its own, as other agents do.

        Its output goes through a file: a child left in the background keeps a pipe open for ever.
        """
        import subprocess

        scratch = os.path.join(self.home, f".output-{os.getpid()}")
        with open(scratch, "w+b") as output:
            shell = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.shell_group = shell.pid
            code = shell.wait()
            self.shell_group = None
            output.seek(0)
            text = output.read().decode("utf-8", "replace").rstrip("\n")
        os.unlink(scratch)
        if code != 0:
            raise ValueError(f"exit code {code}\n{text}".rstrip("\n"))
        return text

    def _fail_at_start(self, faults: dict[str, Any]) -> None:
        if faults.get("ignore_signals"):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if faults.get("orphan"):
            import subprocess

            # In a session of its own, with our stdout open: its reader sees no end of file.
            subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL, start_new_session=True)
        if faults.get("flood_bytes"):
            output, left = sys.stdout.buffer, faults["flood_bytes"]
            output.write(b'{"type": "flood", "text": "')
            while left:
                left -= output.write(b"x" * min(left, 65536))
            output.write(b'"}\n')
        self._garbled = bool(faults.get("garbage"))


def _fail_before_answer(faults: dict[str, Any]) -> None:
    """In place of the answer: may raise AgentError, end the process, never return."""
    while faults.get("hang"):
        time.sleep(3600)
    kind = faults.get("error")
    if kind:
        raise AgentError(kind, faults.get("message") or f"the script asked for {kind}")
    code = faults.get("exit_code")
    if code is not None and code < 0:
        os.kill(os.getpid(), -code)
    if code is not None or faults.get("no_result"):
        sys.exit(code or 0)


def _installed_skills() -> dict[str, str]:
    """Name → path of its SKILL.md, sorted; a skill's name is that of its directory."""
    found: dict[str, str] = {}
    for directory in (".agents/skills", ".claude/skills"):
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            path = os.path.join(directory, name, "SKILL.md")
            if os.path.isfile(path):
                found.setdefault(name, path)
    return dict(sorted(found.items()))


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read().rstrip("\n")
