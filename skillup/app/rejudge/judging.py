"""From a source and perhaps edited cases to new grades, one record at a time."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from skillup.analysis import Observations
from skillup.app.rejudge.cases import CaseSelection, EditedCase, EditedCases, with_references
from skillup.app.rejudge.secrets import Hidden, has_secrets, without_secrets
from skillup.app.rejudge.share import SharedWork, share_of
from skillup.app.rejudge.sources import RecordSource, RecordSubject
from skillup.errors import UsageError
from skillup.judges.rejudge.changes import GradeChange, compare
from skillup.judges.rejudge.judges_compared import read_by
from skillup.judges.rejudge.regrade import RegradeItem, Regrader
from skillup.judges.usage import joined, since
from skillup.redaction.secrets import Secrets
from skillup.reports.rejudging_json import RejudgeCounts
from skillup.reports.text import shown_id
from skillup.schema.analysis import Analysis
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.grade import Judging as Took
from skillup.schema.record import FileState
from skillup.schema.suite import Suite
from skillup.store import RunDirectory
from skillup.store.journal import no_mask

_READ_AT_ONCE = 8
"""Records; how many questions are under way at once, their readers limit themselves."""
_MOST_WAITING = 64
T = TypeVar("T")
Judged = tuple[str, Grade, GradeChange | None]


@dataclass(slots=True)
class Rejudging:
    """One pass over a source."""

    source: RecordSource
    selection: CaseSelection
    regrader: Regrader
    edited: EditedCases | None = None
    say: Callable[[str], None] = lambda _: None
    """Told, in a line, what a user should know beside the grades."""
    workers: int = 1
    """Processes among which a large run is shared; checks that judges read are asked by this one.
    More than one only with a regrader that has readers."""
    whole: bool = True
    """False: a grade that is as before may come without its turns and checks."""
    judge_model: str | None = None
    """What reads for the judges, in place of what the cases name; None: that."""
    hidden: Hidden = field(default_factory=Hidden)
    """What must not be shown, of what edited cases and files say, too."""
    last: dict[str, Grade] | None = None
    """The grades of the time before, to compare with and to keep up; None: the recorded ones."""
    took: Took | None = field(init=False, default=None)
    """What judges that read have taken."""
    secrets: Secrets = field(init=False)

    def __post_init__(self) -> None:
        self.secrets = self.hidden.secrets(os.environ)

    def judge(self, tally: RejudgeCounts) -> Iterator[Judged]:
        """Job id, new grade, and what changed (None: there is no older grade), one at a time."""
        with collecting_rarely():
            for subject, grade in self.graded(self._offered(tally)):
                if isinstance(subject, SharedWork) and subject.as_before:
                    change: GradeChange | None = GradeChange(grade, grade, ())
                else:
                    grade, change = self._compared(subject, grade)
                if self.last is not None:
                    known = self.last.get(subject.job_id)
                    change = change if known is None else compare(known, grade)
                    self.last[subject.job_id] = grade
                tally.add(grade, change)
                for note in subject.notes:
                    self.say(note)
                yield subject.job_id, grade, change
            tally.took = self.took

    def _compared(
        self, subject: RecordSubject | SharedWork, grade: Grade
    ) -> tuple[Grade, GradeChange | None]:
        """The grade without secrets, and what changed."""
        text = as_text(grade)
        if has_secrets(text, self.secrets):
            grade = without_secrets(grade, self.secrets)
            text = as_text(grade)
        return grade, _change(subject, grade, text, self.secrets)

    def cleaned(self, grade: Grade) -> Grade:
        """`grade` without secrets."""
        masked = has_secrets(as_text(grade), self.secrets)
        return without_secrets(grade, self.secrets) if masked else grade

    def items(self, tally: RejudgeCounts) -> Iterator[tuple[RecordSubject, RegradeItem]]:
        """What is to be judged, in order; what is not is counted, and said, at the end."""
        only = self._only()
        case, suite = (only.case, only.suite) if only is not None else (None, "")
        seen: set[str] = set()
        for subject in self.source.subjects(case, suite):
            seen.add(subject.job_id)
            item = self.item_of(subject, tally)
            if item is not None:
                yield subject, item
        self._count_rest(tally, seen)

    def _offered(
        self, tally: RejudgeCounts
    ) -> Iterator[tuple[RecordSubject | SharedWork, RegradeItem | Grade]]:
        """As :meth:`items`; of trials that another process has judged, their grades."""
        share = share_of(self)
        if share is None:
            yield from self.items(tally)
            return
        seen: set[str] = set()
        yield from share.outcomes(tally, seen)
        self._count_rest(tally, seen)

    def _count_rest(self, tally: RejudgeCounts, seen: set[str]) -> None:
        tally.damaged = len(self.source.damaged)
        for job_id, why in self.source.damaged.items():
            self.say(f"{shown_id(job_id)}: {why}, and was not judged")
        if not self.selection:
            tally.not_run = len(self.source.planned - seen - set(self.source.damaged))
        if tally.left_out:
            trials = "trial" if tally.left_out == 1 else "trials"
            self.say(f"{tally.left_out} {trials} of cases that --cases lacks: not judged")

    def graded(self, items: Iterator[tuple[T, RegradeItem | Grade]]) -> Iterator[tuple[T, Grade]]:
        """In order; those that are read by judges wait for each other, and are read at once."""
        waiting: list[tuple[T, RegradeItem | Grade, Grade | None]] = []
        to_read = 0
        for about, item in items:
            grade = item if isinstance(item, Grade) else self.regrader.by_rules(item)
            waiting.append((about, item, grade))
            to_read += grade is None
            if not to_read or to_read == _READ_AT_ONCE or len(waiting) == _MOST_WAITING:
                yield from self._settled(waiting)
                waiting.clear()
                to_read = 0
        yield from self._settled(waiting)

    def _settled(
        self, waiting: list[tuple[T, RegradeItem | Grade, Grade | None]]
    ) -> Iterator[tuple[T, Grade]]:
        to_read = [
            item for _, item, grade in waiting if grade is None and isinstance(item, RegradeItem)
        ]
        read = iter(self.regrader.by_reading(to_read) if to_read else ())
        for about, item, grade in waiting:
            if grade is not None:
                yield about, grade
                continue
            graded = next(read)
            if isinstance(item, RegradeItem):
                self.took = joined(self.took, since(graded.judging, item.record.judging))
            yield about, graded

    def item_of(self, subject: RecordSubject, tally: RejudgeCounts) -> RegradeItem | None:
        """What it is judged by; None: it is not wanted, or is left out, which is counted."""
        record = subject.record
        if not self.selection.takes(record.case_id, _tags(record.case), record.branch_of):
            return None
        if self.edited is None:
            return self._recorded(subject)
        edited = self.edited.of(record)
        if edited is None and self.source.is_single:
            edited = self._only()
        if edited is None:
            tally.left_out += 1
            return None
        return self._item(subject, edited)

    def _only(self) -> EditedCase | None:
        """The case that a single record, whatever its id, is judged by."""
        only = self.edited.only() if self.edited is not None else None
        if self.source.kind == "session" and self.edited is not None and only is None:
            return self._one_of_several()
        return only

    def _one_of_several(self) -> EditedCase:
        assert self.edited is not None
        takes = self.selection.takes
        chosen = [e for e in self.edited.cases if takes(e.case.id, e.case.tags, e.branch_of)]
        if len(chosen) == 1:
            return chosen[0]
        raise UsageError(
            f"--cases has {len(self.edited.cases)} cases, and a session is one conversation",
            hint="give the case's own file, or choose it with -k",
        )

    def _item(self, subject: RecordSubject, edited: EditedCase) -> RegradeItem:
        mask = self.secrets.mask if self.source.is_masked else no_mask
        record, contents = with_references(subject.record, edited, mask)
        # Scripts, and the files of judges, are those beside the edited case.
        record = record.model_copy(update={"suite_root": str(edited.root)})

        def read_file(state: FileState) -> bytes | None:
            known = contents.get(state.sha256 or "")
            return known if known is not None else subject.read_file(state)

        return RegradeItem(record, read_file, self._read_by(edited.case, edited.settings))

    def _read_by(self, case: Case, suite: Suite | None = None) -> Case:
        if self.judge_model is None:
            return case
        return read_by(case, self.judge_model, Path.cwd(), suite)

    def _recorded(self, subject: RecordSubject) -> RegradeItem | None:
        """By the case in the record; None if that is none, which is one damaged record of many."""
        try:
            case = self.regrader.recorded_case(subject.record)
        except ValueError:
            what, hint = "the case in its record", "give the case as it is now with --cases"
            if self.source.is_single:
                problem = f"{shown_id(subject.job_id)}: this skillup cannot read {what}"
                raise UsageError(problem, hint=hint) from None
            self.source.damaged[subject.job_id] = f"{what} cannot be read ({hint})"
            return None
        return RegradeItem(subject.record, subject.read_file, self._read_by(case))


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Records and grades have no circles: they go by themselves, and to look costs a fifth."""
    usual = gc.get_threshold()
    gc.set_threshold(50_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _tags(case: dict[str, Any]) -> list[str]:
    tags = case.get("tags")
    return [str(tag) for tag in tags] if isinstance(tags, list) else []


def _change(
    subject: RecordSubject | SharedWork, grade: Grade, text: bytes | None, secrets: Secrets
) -> GradeChange | None:
    if subject.grade is None:
        return None
    try:
        before = subject.grade.read_bytes()
        # Mostly nothing changes, and to validate the older grade costs more than to grade anew.
        if before == text:
            return GradeChange(grade, grade, ())
        older = Grade.model_validate_json(before)
        if has_secrets(before, secrets):
            older = without_secrets(older, secrets)
        return compare(older, grade)
    except (OSError, ValueError):
        return None


def as_text(grade: Grade) -> bytes | None:
    """As the store writes it, faster; None where it would have to mend something."""
    try:
        return grade.model_dump_json(by_alias=True, indent=2).encode() + b"\n"
    except ValueError:  # half of a character
        return None


def say_on_stderr(note: str) -> None:
    """A note for people, beside the data."""
    from skillup.reports.text import plain

    sys.stderr.write(plain(f"note: {note}\n"))


# What the grades of a judged run say together, taken as they pass by.


class JudgedRun:
    """Watches the grades of one judging of a run."""

    def __init__(self, source: RecordSource, *, selected: bool) -> None:
        """`selected`: trials were chosen, so that those which are missing were not wanted."""
        self._source = source
        self._selected = selected
        self._observations = Observations()
        self._seen: set[str] = set()

    def watch(self, judged: Iterator[Judged]) -> Iterator[Judged]:
        """`judged`, once they are through."""
        for job_id, grade, change in judged:
            self._observations.add(grade)
            self._seen.add(job_id)
            yield job_id, grade, change

    def analysis(self) -> Analysis:
        """Of all that has passed; trials that have no grade are those that were not run."""
        info = RunDirectory.open(self._source.path).run_info()
        if self._selected:
            return self._observations.analysis(info)
        missing = sorted(self._source.planned - self._seen)
        saved = sorted(self._source.not_needed)
        return self._observations.analysis(info, not_run=missing, not_needed=saved)
