"""The verbs, put together. Verb modules import what is heavy only when they are called."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

_VERBS = """
    run=run.run merge=reports.merge judge=judge.judge label=judge.label show=reports.show
    report=reports.report view=reports.view compare=history.compare trends=history.trends
    bisect=history.bisect baseline=history.baseline runs=history.runs validate=suites.validate
    list=suites.list_cases init=suites.init import=suites.import_suite export=reports.export
    schema=suites.schema doctor=suites.doctor session=suites.session
    """
VERBS = dict(verb.split("=") for verb in _VERBS.split())
"""The module of each verb, and in it its function, or a Typer of more verbs."""


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command line with the verb that `arguments` begin with; with all of them for help."""
    app = typer.Typer(
        name="skillup",
        help="Does this agent skill still work? Run real conversations with real CLI agents, "
        "record them, and judge the record.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    verb = next(iter(arguments), "")
    for name, place in {verb: VERBS[verb]}.items() if verb in VERBS else VERBS.items():
        module, _, function = place.partition(".")
        command = getattr(import_module(f"skillup.cli.commands.{module}"), function)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _options(
    version: bool = typer.Option(
        False, "--version", "-V", help="Show the version and exit.", is_eager=True
    ),
) -> None:
    if version:
        from skillup import __version__

        typer.echo(f"skillup {__version__}")
        raise typer.Exit
