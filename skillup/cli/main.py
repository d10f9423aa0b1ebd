"""The verbs, put together. Verb modules import what is heavy only when they are called."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from skillup.cli.commands import (
    compare,
    doctor,
    export,
    import_suite,
    init,
    judge,
    list_cases,
    merge,
    report,
    run,
    schema,
    show,
    trends,
    validate,
    view,
)
from skillup.cli.commands.session import session_app
from skillup.cli.signals import raising


class _Verbs(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        with raising():
            return super().invoke(ctx)


app = typer.Typer(
    name="skillup",
    cls=_Verbs,
    help="Does this agent skill still work? Hold real conversations with real CLI agents, record "
    "them, and judge the record.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("run")(run.run)
app.command("merge")(merge.merge)
app.command("judge")(judge.judge)
app.command("show")(show.show)
app.command("report")(report.report)
app.command("view")(view.view)
app.command("compare")(compare.compare)
app.command("trends")(trends.trends)
app.command("validate")(validate.validate)
app.command("list")(list_cases.list_cases)
app.command("init")(init.init)
app.command("import")(import_suite.import_suite)
app.command("export")(export.export)
app.command("schema")(schema.schema)
app.command("doctor")(doctor.doctor)
app.add_typer(session_app, name="session")


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", "-V", help="Show the version and exit.", is_eager=True
    ),
) -> None:
    if version:
        from skillup import __version__

        typer.echo(f"skillup {__version__}")
        raise typer.Exit
