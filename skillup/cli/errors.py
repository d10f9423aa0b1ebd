"""The one place where exceptions become messages and exit codes.

A :class:`SkillupError` says what to do and carries its code. Ctrl-C is 130. Anything else is a
defect of ours: exit 3, with a log that can be pasted into a report.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillup.cli.signals import is_interrupt
from skillup.cli.standard_output import standard_output
from skillup.errors import ExitCode, InvalidFilesError, OutputError, SkillupError, UsageError


def run_app(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    with standard_output():
        code = _run(arguments)
        try:
            sys.stdout.flush()
        except OutputError as error:
            code = report(error)
        sys.stderr.flush()
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        Path.cwd()
    except OSError:  # it was deleted; hardly anything of Python's works in it
        return report(
            UsageError("the current directory is not there any more", hint="go to another: cd")
        )
    import typer

    from skillup.cli.main import app_for

    # Some versions of Typer bring a Click of their own; both have this class, by this name.
    usage_error = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        code = app_for(arguments)(list(arguments), standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except SkillupError as error:
        return report(error)
    except BaseException as defect:  # noqa: BLE001 - nothing may escape as a traceback
        if is_interrupt(defect):
            _say("interrupted")
            return ExitCode.INTERRUPTED
        if isinstance(defect, usage_error):
            wrong: Any = defect
            message, context = wrong.format_message().strip(), getattr(defect, "ctx", None)
            if type(defect).__name__ == "NoArgsIsHelpError" or not message:
                wrong.show()
                return ExitCode.USAGE
            hint = f"`{context.command_path} --help` shows what it takes" if context else None
            return report(UsageError(message[:1].lower() + message[1:].rstrip("."), hint=hint))
        known = _of_the_system(defect)
        if known is not None:
            return report(known)
        _report_defect(defect)
        return ExitCode.ERROR
    return code if isinstance(code, int) else ExitCode.PASSED


def report(error: SkillupError) -> int:
    """Say what is wrong; the exit code."""
    if isinstance(error, InvalidFilesError):
        from skillup.reports.terminal.listing import problem_line

        _say("\n".join([*map(problem_line, error.problems), error.message]))
    else:
        _say(f"error: {error.message}")
    if error.hint:
        _say(f"  hint: {error.hint}")
    return error.exit_code


def _say(text: str) -> None:
    from skillup.reports.text import plain

    # Names of files and of cases may be in it, and anything may be in those.
    sys.stderr.write(plain(text) + "\n")


def _of_the_system(defect: BaseException) -> SkillupError | None:
    """What the machine or the command line is to blame for, wherever it came up; None: we are."""
    import errno

    if isinstance(defect, BaseExceptionGroup):
        return next(filter(None, map(_of_the_system, defect.exceptions)), None)
    if not isinstance(defect, OSError):
        return None
    if defect.errno == errno.ENAMETOOLONG:
        name = str(defect.filename)
        shown = name if len(name) < 100 else f"{name[:60]}… ({len(name)} characters)"
        return UsageError(f"{shown}: the name is too long for this system")
    if defect.errno in (errno.EMFILE, errno.ENFILE):
        hint = "raise `ulimit -n`, or run fewer trials at once (-j)"
        return SkillupError("more files have to be open than are allowed", hint=hint)
    return None


def _report_defect(defect: BaseException) -> None:
    """A traceback goes into a file, not onto the screen; secrets go nowhere."""
    import os
    import platform
    import tempfile
    import traceback

    from skillup import __version__
    from skillup.redaction.secrets import Secrets

    mask = Secrets.from_environment(os.environ).mask
    text = "".join(traceback.format_exception(defect))
    versions = f"skillup {__version__}, Python {platform.python_version()}, {platform.platform()}"
    with tempfile.NamedTemporaryFile(
        "w", prefix="skillup-error-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        log.write(mask(f"{versions}\narguments: {sys.argv[1:]}\n\n{text}"))
    _say(mask(f"error: skillup itself failed: {type(defect).__name__}: {defect}"))
    _say(f"  hint: this is a defect of ours; please report it with {log.name}")
