"""How the command begins and ends: exceptions as messages and exit codes, Ctrl-C, stdout.

What is no :class:`SkillupError` is a defect of ours: exit 3, with a log for a report.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from skillup.errors import ExitCode, InvalidFilesError, OutputError, SkillupError, UsageError


def run_app(arguments: Sequence[str]) -> int:
    """Run the command line; the exit code."""
    usual = sys.stdout, sys.stderr
    sys.stdout = _wrapped(sys.stdout, sys.__stdout__, required=True)
    sys.stderr = _wrapped(sys.stderr, sys.__stderr__, required=False)
    try:
        code = _run(arguments)
        try:
            sys.stdout.flush()
        except OutputError as error:
            code = report(error)
        sys.stderr.flush()
    finally:
        sys.stdout, sys.stderr = usual
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        import click

        from skillup.cli.main import app_for

        # Not by its own `main`, which makes an exit code of Ctrl-C, with a word of its own.
        with app_for(arguments).make_context("skillup", list(arguments)) as context:
            code = context.command.invoke(context)
    except SkillupError as error:
        return report(error)
    except BaseException as defect:  # noqa: BLE001 - nothing may escape as a traceback
        if _is_interrupt(defect):
            from skillup.reports.text import say

            say("interrupted")
            return ExitCode.INTERRUPTED
        if isinstance(defect, click.exceptions.Exit):
            return defect.exit_code
        if isinstance(defect, click.exceptions.NoArgsIsHelpError):
            defect.show()
            return ExitCode.USAGE
        if isinstance(defect, click.ClickException):
            where, message = getattr(defect, "ctx", None), defect.format_message().strip()
            hint = f"`{where.command_path} --help` shows what it takes" if where else None
            return report(UsageError(message[:1].lower() + message[1:].rstrip("."), hint=hint))
        if (known := _of_the_system(defect)) is not None:
            return report(known)
        _report_defect(defect)
        return ExitCode.ERROR
    return code if isinstance(code, int) else ExitCode.PASSED


def report(error: SkillupError) -> int:
    """Say what is wrong; the exit code."""
    from skillup.reports.text import problem_line, say

    if isinstance(error, InvalidFilesError):
        say(*map(problem_line, error.problems), error.message)
    else:
        say(f"error: {error.message}")
    if error.hint:
        say(f"  hint: {error.hint}")
    return error.exit_code


def _of_the_system(defect: BaseException) -> SkillupError | None:
    """What the machine or the command line is to blame for, wherever it came up; None: we are."""
    if isinstance(defect, BaseExceptionGroup):
        return next(filter(None, map(_of_the_system, defect.exceptions)), None)
    if not isinstance(defect, OSError):
        return None
    number = defect.errno
    if number == errno.ENOENT and defect.filename is None:  # getcwd's; a file has its name
        return UsageError("the current directory is not there any more", hint="go to another: cd")
    if number == errno.ENAMETOOLONG:
        return UsageError("a name is too long for this system")
    if number in (errno.EMFILE, errno.ENFILE):
        hint = "raise `ulimit -n`, or run fewer trials at once (-j)"
        return SkillupError("more files have to be open than are allowed", hint=hint)
    return None


def _report_defect(defect: BaseException) -> None:
    """A traceback goes into a file, not onto the screen; secrets go nowhere."""
    import platform
    import tempfile
    import traceback

    from skillup import __version__
    from skillup.redaction.secrets import NO_SECRETS
    from skillup.reports.text import say

    mask = NO_SECRETS.also_of(os.environ).mask
    text = "".join(traceback.format_exception(defect))
    versions = f"skillup {__version__}, Python {platform.python_version()}, {platform.platform()}"
    with tempfile.NamedTemporaryFile(
        "w", prefix="skillup-error-", suffix=".log", delete=False, encoding="utf-8"
    ) as log:
        log.write(mask(f"{versions}\narguments: {sys.argv[1:]}\n\n{text}"))
    say(mask(f"error: skillup itself failed: {type(defect).__name__}: {defect}"))
    say(f"  hint: this is a defect of ours; please report it with {log.name}")


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether a KeyboardInterrupt is it, in it, or what led to it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        if isinstance(error, BaseExceptionGroup) and any(map(_is_interrupt, error.exceptions)):
            return True
        error = error.__cause__ or error.__context__
    return False


# What becomes of stdout and stderr is no reason for another exit code. A reader that goes away
# (`| head`) ends nothing: the rest is dropped. A stdout that cannot be written otherwise (a full
# disk below `> night.txt`) is for the user to mend, and says so; an OSError alone would not tell it
# from a file of the run. Nobody has to listen to stderr: what it cannot take is dropped.


class _Output(io.FileIO):
    """The lowest layer, so that whatever is written passes here: text, or bytes."""

    required = True  # Whether a write that fails, though somebody reads, is an error
    _gone = False

    def write(self, data: Any, /) -> int:
        """All of `data` counts as written once the reader has gone. Raises OutputError, once."""
        if self._gone:
            return len(data)
        try:
            written: int | None = super().write(data)
            if written is None:  # it was made non-blocking, and takes no more just now
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        except OSError as error:
            self._gone = True
            if self.required and not isinstance(error, BrokenPipeError):
                raise OutputError(f"cannot write to stdout: {error.strerror or error}") from error
            return len(data)
        return written


def _wrapped(usual: TextIO | None, systems: TextIO | None, *, required: bool) -> TextIO:
    """`usual` with :class:`_Output` below it; the null device where there is none (`2>&-`)."""
    if usual is None:
        return open(os.devnull, "w")  # noqa: PTH123 - for good
    if usual is not systems or not isinstance(usual, io.TextIOWrapper):
        return usual
    raw = _Output(usual.fileno(), "w", closefd=False)
    raw.required = required
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=usual.encoding,
        errors="backslashreplace",  # where it has no such characters
        line_buffering=usual.line_buffering,
        write_through=usual.write_through,
    )
