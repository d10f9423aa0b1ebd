"""The verbs, put together. Verb modules import what is heavy only when they are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any

import click

from skillup import __version__

_VERBS = """
    run=run.run merge=reports.merge judge=judge.judge label=judge.label show=reports.show
    report=reports.report view=reports.view compare=history.compare trends=history.trends
    bisect=history.bisect baseline/set=history.set_baseline baseline/clear=history.clear_baseline
    baseline/show=history.show_baseline baseline/accept=history.accept_cases
    runs/list=history.list_runs runs/label=history.label_run runs/prune=history.prune
    validate=suites.validate list=suites.list_cases init=suites.init import=suites.import_suite
    export=reports.export schema=suites.schema doctor=suites.doctor
    session/list=suites.list_sessions session/show=suites.show_session
    session/to-case=suites.session_to_case
    """
VERBS = dict(verb.split("=") for verb in _VERBS.split())  # Module and function of each
_GROUPS = {
    "": "Does this agent skill still work? Run real conversations with real CLI agents, record "
    "them, and judge the record.",
    "baseline": "What runs are compared with: a pinned run, and what was accepted.",
    "runs": "Past runs: list, label and remove them.",
    "session": "The agents' own sessions: which are here, and what was said in them.",
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.commands)  # in our order


def app_for(arguments: Sequence[str]) -> click.Group:
    """The command line with the verb that `arguments` begin with; with all of them for help."""
    groups = {name: _Group(name or "skillup", help=text) for name, text in _GROUPS.items()}
    app, first = groups[""], next(iter(arguments), "")
    app.context_settings = {"help_option_names": ["-h", "--help"], "show_default": True}
    click.version_option(__version__, "--version", "-V", message="skillup %(version)s")(app)
    chosen = {name: VERBS[name] for name in VERBS if name.partition("/")[0] == first} or VERBS
    for name, place in chosen.items():
        group, _, verb = name.rpartition("/")
        if group:
            app.add_command(groups[group])
        module, _, function = place.partition(".")
        called = getattr(import_module(f"skillup.cli.commands.{module}"), function)
        groups[group].add_command(_command(verb, called))
    return app


def _command(name: str, verb: Callable[..., int]) -> click.Command:
    """Of a function whose parameters have those of `skillup.cli.options` as their defaults."""

    def call(**given: Any) -> int:
        lists = {key: list(value) or None for key, value in given.items() if type(value) is tuple}
        return verb(**given | lists)

    params = [_parameter(one, verb.__globals__) for one in signature(verb).parameters.values()]
    return click.Command(name, params=params, callback=call, help=getdoc(verb))


def _parameter(one: Parameter, names: dict[str, Any]) -> click.Parameter:
    """As its annotation says: a type, or an enumeration of `names`; or a list of it."""
    default, text, flags, more = one.default
    written = str(one.annotation).removesuffix(" | None").replace("o.Texts", "list[str]")
    inner = written.removeprefix("list[").removesuffix("]")
    kind: Any = {"bool": bool, "float": float, "int": int, "str": str}.get(inner) or names[inner]
    about = {"type": kind, "help": text, "required": default is ..., **more}
    if default is not ...:
        about["default"] = default
    if parser := about.pop("parser", None):
        about = {**about, "type": parser, "metavar": about.get("metavar", "PATH")}
    elif bounds := {name: about.pop(name) for name in ("min", "max") if name in about}:
        about["type"] = (click.IntRange if kind is int else click.FloatRange)(**bounds)
    elif issubclass(kind, Enum | Path):
        about["type"] = click.Path(path_type=Path) if kind is Path else click.Choice(kind)
    if flags is None:
        return click.Argument([one.name], nargs=-1 if inner != written else 1, **about)
    flags = flags or [f"--{one.name.replace('_', '-')}"]
    about |= {"is_flag": kind is bool, "multiple": inner != written}
    return click.Option([one.name, *flags], **about)
