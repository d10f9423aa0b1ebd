"""A process that judges its share of a run by rules: ``python -m skillup.app.rejudge.worker``.

It is asked on stdin, by :mod:`skillup.app.rejudge.share`, and writes a line for each chunk.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from skillup.app.rejudge.cases import CaseSelection, EditedCase, EditedCases
from skillup.app.rejudge.judging import Rejudging, as_text, collecting_rarely
from skillup.app.rejudge.secrets import Hidden, has_secrets
from skillup.app.rejudge.share import (
    AS_BEFORE,
    LEFT_OUT,
    NEW,
    NOT_WANTED,
    UNSAID,
    Said,
)
from skillup.app.rejudge.sources import RecordSubject, open_source, trial_reader
from skillup.errors import SkillupError
from skillup.judges.evaluate import Reader
from skillup.judges.rejudge.regrade import Regrader
from skillup.reports.rejudging_json import RejudgeCounts
from skillup.schema.case import Case
from skillup.schema.record import Record

_NOTHING_OF_IT: dict[str, Any] = {"turns": [], "assertions": []}


def main() -> int:
    """Judge what stdin asks for."""
    # Who started it ends it, too: then there is nothing to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asked = json.load(sys.stdin.buffer)
    judging = _judging(asked)
    read = trial_reader(judging.source)
    with collecting_rarely():
        for chunk in asked["chunks"]:
            said = [_judged(job_id, Path(directory), judging, read) for job_id, directory in chunk]
            sys.stdout.write(json.dumps(said) + "\n")
            try:
                sys.stdout.flush()
            except BrokenPipeError:  # nobody listens any more
                return 1
    return 0


def _judging(asked: dict[str, Any]) -> Rejudging:
    edited = asked["edited"]
    if edited is not None:
        edited = EditedCases(
            tuple(
                EditedCase(Case.model_validate(item["case"]), item["suite"], Path(item["root"]))
                for item in edited
            )
        )
    source = open_source(asked["run"], workspace=None, skill_dir=None)
    selection = CaseSelection(tuple(asked["globs"]), tuple(asked["tags"]))
    hidden = Hidden(**asked["hidden"])
    return Rejudging(source, selection, Regrader(_nobody), edited, hidden=hidden)


def _nobody(record: Record, case: Case) -> AbstractAsyncContextManager[Reader]:
    del record, case
    raise AssertionError("what judges read is not judged here")


def _judged(
    job_id: str,
    directory: Path,
    judging: Rejudging,
    read: Callable[[str, Path], RecordSubject | None],
) -> Said:
    """What can be said of one trial; nothing where whoever asks should look himself."""
    tally = RejudgeCounts()
    try:
        subject = read(job_id, directory)
        if subject is None:
            return UNSAID
        item = judging.item_of(subject, tally)
        if job_id in judging.source.damaged:
            return UNSAID
        grade = judging.regrader.by_rules(item) if item is not None else None
    except SkillupError:
        return UNSAID
    if item is None:
        return (LEFT_OUT if tally.left_out else NOT_WANTED, "")
    if grade is None:
        return UNSAID
    text = as_text(grade)
    if text is None or has_secrets(text, judging.secrets):
        return UNSAID
    if subject.grade is not None and _content(subject.grade) == text:
        return (AS_BEFORE, grade.model_copy(update=_NOTHING_OF_IT).model_dump_json(by_alias=True))
    return (NEW, text.decode())


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
