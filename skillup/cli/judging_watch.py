"""Judging again whenever somebody saves a case."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import replace
from datetime import datetime

from skillup.cli.judging_cases import files_beside, watched
from skillup.cli.judging_output import JudgeRequest, judge_once
from skillup.errors import InvalidFilesError, SkillupError
from skillup.reports.problems import problem_line, shown_path
from skillup.reports.text import plain

_SECONDS = 0.25


def judge_on_changes(request: JudgeRequest) -> int:
    """Judge now and after each change, until Ctrl-C, which is a KeyboardInterrupt.

    What is wrong with a file is said, no more: it may just be half written.
    """
    # A shell that starts it in the background has Ctrl-C ignored; here it is the only way to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen, beside = None, files_beside(request.cases)
    request = replace(request, last={})
    while True:
        # Looked at before it is read: what changes meanwhile is noticed the next time.
        state = watched(request.cases, beside)
        if state != seen:
            beside = files_beside(request.cases)
            seen = watched(request.cases, beside)
            _judge(request)
            names = ", ".join(shown_path(path) for path in request.cases)
            now = datetime.now().astimezone()
            sys.stderr.write(plain(f"{now:%H:%M:%S}  watching {names} (Ctrl-C ends)\n\n"))
        time.sleep(_SECONDS)


def _judge(request: JudgeRequest) -> None:
    try:
        judge_once(request)
    except InvalidFilesError as error:
        for problem in error.problems:
            sys.stderr.write(problem_line(problem) + "\n")
    except SkillupError as error:
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        sys.stderr.write(plain(f"error: {error.message}{hint}\n"))
