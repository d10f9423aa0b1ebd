"""One turn of the agent, from its arguments to its result."""

from __future__ import annotations

import os
import signal
import sys

from skillup.engines.scripted_agent import VERSION
from skillup.engines.scripted_agent.arguments import SKILL_DIRECTORIES, parse_arguments
from skillup.engines.scripted_agent.errors import AgentError
from skillup.engines.scripted_agent.faults import Faults
from skillup.engines.scripted_agent.placeholders import Placeholders
from skillup.engines.scripted_agent.replies import choose_reply, load_replies, no_reply
from skillup.engines.scripted_agent.sessions import AgentSession
from skillup.engines.scripted_agent.skills import installed_skills
from skillup.engines.scripted_agent.steps import Steps
from skillup.engines.scripted_agent.stream import Stream
from skillup.engines.scripted_agent.tools import Tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def main(argv: list[str] | None = None) -> int:
    """Holds one turn; returns the exit code."""
    options = parse_arguments(argv)
    replies = load_replies(options.script)
    skills = installed_skills(options.skills_dir or list(SKILL_DIRECTORIES))
    scratch = os.path.join(options.home, f".output-{os.getpid()}")
    tools = Tools(options.permission, skills, scratch)
    stream = Stream(options.resume or options.session_id)
    try:
        message = sys.stdin.buffer.read().decode("utf-8", "replace")
        session = _open_session(options)
        choice = choose_reply(replies, message, session.next_turn, skills)
        faults = Faults(choice[0].get("misbehave") if choice else None, session.next_turn)
        session = faults.session(session)
        _announce(stream, session, options, list(skills))
        if choice is None:
            raise no_reply(message, session.next_turn)
        reply, match = choice
        system = _system_prompt(options)
        filler = Placeholders(session, message, match, system, ", ".join(skills))
        session.add("user", turn=session.next_turn, text=message)
        faults.at_start(stream)
        steps = Steps(stream, session, filler, tools, options.max_turns)
        for step in reply.get("steps", ()):
            steps.take(step)
        faults.before_answer()
        _answer(steps, session, filler.fill(reply.get("say", "")), reply.get("usage", {}), stream)
    except AgentError as error:
        stream.result("", {"kind": error.kind, "message": error.message})
        return 1
    except KeyboardInterrupt:
        if tools.shell_group is not None:
            os.killpg(tools.shell_group, signal.SIGKILL)
        return 130
    return 0


def _answer(
    steps: Steps, session: AgentSession, answer: str, usage: dict[str, int], stream: Stream
) -> None:
    steps.count()
    if answer:
        stream.event("message", text=answer)
    session.add("answer", turn=len(session.exchanges), text=answer)
    session.sync()
    stream.event("usage", **usage, requests=steps.taken)
    stream.result(answer, None)


def _open_session(options: argparse.Namespace) -> AgentSession:
    if options.resume:
        return AgentSession.resume(options.home, options.resume)
    return AgentSession.start(options.home, options.session_id)


def _system_prompt(options: argparse.Namespace) -> str:
    if options.system_file is None:
        return ""
    with open(options.system_file, encoding="utf-8", newline="") as file:
        return file.read()


def _announce(
    stream: Stream, session: AgentSession, options: argparse.Namespace, skills: list[str]
) -> None:
    stream.session_id = session.id
    stream.event(
        "session_started",
        session_id=session.id,
        agent_version=VERSION,
        model=options.model,
        permission=options.permission,
        turn=session.next_turn,
        skills=skills,
    )
