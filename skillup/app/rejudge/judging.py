"""From a source and perhaps edited cases to new grades, one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from skillup.app.rejudge.cases import CaseSelection, EditedCase, EditedCases, with_references
from skillup.app.rejudge.pool import FEWEST, LEFT_OUT, NOT_CHOSEN, Found, Place, Regrade, grades_of
from skillup.app.rejudge.sources import (
    RecordSource,
    RecordSubject,
    open_source,
    trial_reader,
    trials_of,
)
from skillup.errors import SkillupError, UsageError
from skillup.judges.evaluate import Judge
from skillup.judges.rejudge.changes import GradeChange, compare
from skillup.judges.rejudge.judges_compared import read_by
from skillup.judges.rejudge.regrade import RegradeItem, Regrader
from skillup.judges.usage import since
from skillup.redaction.secrets import Secrets
from skillup.reports.rejudging import RejudgeCounts
from skillup.reports.text import count, shown_id
from skillup.schema.case import Case
from skillup.schema.grade import Grade, Judging
from skillup.schema.record import FileState, Record, joined
from skillup.schema.suite import Suite
from skillup.store.journal import no_mask, to_json
from skillup.store.trials import GRADE_FILE

_READ_AT_ONCE = 8
"""Records; how many questions are under way at once, their readers limit themselves."""
_MOST_WAITING = 64
T = TypeVar("T")
Judged = tuple[str, Grade, GradeChange | None]
Trial = tuple[str, Path | None]
"""A job id, and where its older grade is: all that is needed once there is a grade."""


@dataclass(slots=True)
class Rejudging:
    """One pass over a source."""

    source: RecordSource
    selection: CaseSelection
    regrader: Regrader
    edited: EditedCases | None = None
    say: Callable[[str], None] = lambda _: None
    """For a line of what a user should know beside the grades."""
    workers: int = 1
    """Processes among which a large run is shared; checks that judges read are asked by this one.
    More than one only with a regrader that has readers."""
    judge_model: str | None = None
    """What reads for the judges, in place of what the cases name; None: that."""
    secrets: Secrets = field(default_factory=lambda: Secrets({}))
    """What must not be shown."""
    last: dict[str, Grade] | None = None
    """The grades of the time before, to compare with and to keep up; None: the recorded ones."""
    took: Judging | None = field(init=False, default=None)
    """What judges that read have taken."""

    def judge(self, counts: RejudgeCounts) -> Iterator[Judged]:
        """Job id, new grade, and what changed (None: there is no older grade), one at a time."""
        for (job_id, older), found in self.graded(self._trials(counts)):
            grade = self.cleaned(found)
            change = self._change(older, grade)
            if self.last is not None:
                known = self.last.get(job_id)
                change = change if known is None else compare(known, grade)
                self.last[job_id] = grade
            counts.add(grade, change)
            yield job_id, grade, change
        counts.took = self.took

    def cleaned(self, grade: Grade) -> Grade:
        """`grade` without secrets."""
        if not has_secrets(grade, self.secrets):
            return grade
        return Grade.model_validate_json(to_json(grade, self.secrets.mask, indent=None))

    def _change(self, older: Path | None, grade: Grade) -> GradeChange | None:
        try:
            before = older.read_bytes() if older is not None else None
            if before is None:
                return None
            # Mostly nothing changes, and to validate the older grade costs more than to grade anew
            if before == _text(grade):
                return GradeChange(grade, grade, ())
            return compare(self.cleaned(Grade.model_validate_json(before)), grade)
        except (OSError, ValueError):
            return None

    def items(self, counts: RejudgeCounts) -> Iterator[tuple[RecordSubject, RegradeItem]]:
        """What is to be judged, in order; what is not is counted, and said, at the end."""
        only = self._only()
        case, suite = (only.case, only.suite) if only is not None else (None, "")
        seen: set[str] = set()
        for subject in self.source.subjects(case, suite):
            seen.add(subject.job_id)
            item = self.item_of(subject, counts)
            if item is not None:
                for note in subject.notes:
                    self.say(note)
                yield subject, item
        self._count_rest(counts, seen)

    def _trials(self, counts: RejudgeCounts) -> Iterator[tuple[Trial, RegradeItem | Grade]]:
        """As :meth:`items`; of trials that another process has judged, their grades."""
        shared = self.workers > 1 and self.source.kind == "run"
        places = list(trials_of(self.source)) if shared else []
        if len(places) < FEWEST:
            for subject, item in self.items(counts):
                yield (subject.job_id, subject.grade), item
            return
        seen: set[str] = set()
        read = trial_reader(self.source)
        given = str(self.source.path), self.selection, self.edited, self.secrets
        with closing(grades_of(places, self.workers, judge_by_rules, given)) as grades:
            for (job_id, directory), found in grades:
                trial = job_id, directory / GRADE_FILE
                if isinstance(found, Grade):
                    yield trial, found
                elif found is not None:
                    counts.left_out += found == LEFT_OUT
                else:
                    record = read(job_id, directory)
                    if record is None:
                        continue
                    offered = self.item_of(record, counts)
                    if offered is not None:
                        yield trial, offered
                seen.add(job_id)
        self._count_rest(counts, seen)

    def _count_rest(self, counts: RejudgeCounts, seen: set[str]) -> None:
        counts.damaged = len(self.source.damaged)
        for job_id, why in self.source.damaged.items():
            self.say(f"{shown_id(job_id)}: {why}, and was not judged")
        if not self.selection:
            counts.not_run = len(self.source.planned - seen - set(self.source.damaged))
        if counts.left_out:
            trials = count(counts.left_out, "trial")
            self.say(f"{trials} of cases that --cases lacks: not judged")

    def graded(self, items: Iterator[tuple[T, RegradeItem | Grade]]) -> Iterator[tuple[T, Grade]]:
        """In order; those that are read by judges wait for each other, and are read at once."""
        waiting: list[tuple[T, RegradeItem | Grade, Grade | None]] = []
        to_read = 0
        for about, item in items:
            grade = item if isinstance(item, Grade) else self.regrader.by_rules(item)
            waiting.append((about, item, grade))
            to_read += grade is None
            if not to_read or to_read == _READ_AT_ONCE or len(waiting) == _MOST_WAITING:
                yield from self._read(waiting)
                waiting.clear()
                to_read = 0
        yield from self._read(waiting)

    def _read(
        self, waiting: list[tuple[T, RegradeItem | Grade, Grade | None]]
    ) -> Iterator[tuple[T, Grade]]:
        items = [item for _, item, g in waiting if g is None and isinstance(item, RegradeItem)]
        read = iter(self.regrader.by_judges(items) if items else ())
        for about, item, grade in waiting:
            if grade is None and isinstance(item, RegradeItem):
                grade = next(read)
                self.took = joined(self.took, since(grade.judging, item.record.judging))
            if grade is not None:
                yield about, grade

    def item_of(self, subject: RecordSubject, counts: RejudgeCounts) -> RegradeItem | None:
        """What it is judged by; None: it is not chosen, or is left out, which is counted."""
        record = subject.record
        tags = record.case.get("tags")
        tags = [str(tag) for tag in tags] if isinstance(tags, list) else []
        if not self.selection.takes(record.case_id, tags, record.branch_of):
            return None
        if self.edited is None:
            return self._recorded(subject)
        edited = self.edited.of(record)
        if edited is None and self.source.is_single:
            edited = self._only()
        if edited is None:
            counts.left_out += 1
            return None
        mask = self.secrets.mask if self.source.is_masked else no_mask
        record, contents = with_references(record, edited, mask)
        # Scripts, and the files of judges, are those beside the edited case.
        record = record.model_copy(update={"suite_root": str(edited.root)})

        def read_file(state: FileState) -> bytes | None:
            known = contents.get(state.sha256 or "")
            return known if known is not None else subject.read_file(state)

        return RegradeItem(record, read_file, self._read_by(edited.case, edited.suite_settings))

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

    def _read_by(self, case: Case, suite: Suite | None = None) -> Case:
        model = self.judge_model
        return case if model is None else read_by(case, model, Path.cwd(), suite)

    def _only(self) -> EditedCase | None:
        """The case that a single record, whatever its id, is judged by."""
        if self.edited is None:
            return None
        chosen = list(self.edited.cases)
        if self.source.kind == "session" and len(chosen) > 1:
            takes = self.selection.takes
            chosen = [e for e in chosen if takes(e.case.id, e.case.tags, e.branch_of)]
            if len(chosen) != 1:
                raise UsageError(
                    f"--cases has {len(self.edited.cases)} cases, and a session is one "
                    "conversation",
                    hint="give the case's own file, or choose it with -k",
                )
        return chosen[0] if len(chosen) == 1 else None


def judge_by_rules(
    run: str, selection: CaseSelection, edited: EditedCases | None, secrets: Secrets
) -> Regrade:
    """Makes what judges single trials in another process; None: the caller has to look."""

    def nobody(record: Record, case: Case) -> AbstractAsyncContextManager[Judge]:
        raise AssertionError("what judges read is not judged here", record, case)

    source = open_source(run)
    judging = Rejudging(source, selection, Regrader(nobody), edited, secrets=secrets)
    read = trial_reader(source)

    def judge(place: Place) -> Found:
        counts = RejudgeCounts()
        try:
            subject = read(*place)
            item = judging.item_of(subject, counts) if subject is not None else None
            if subject is None or subject.job_id in source.damaged:
                return None
            if item is None:
                return LEFT_OUT if counts.left_out else NOT_CHOSEN
            grade = judging.regrader.by_rules(item)
        except SkillupError:
            return None
        return None if grade is None or has_secrets(grade, secrets) else grade

    return judge


def has_secrets(data: Any, secrets: Secrets) -> bool:
    """Whether there is a secret in the grade or case; one that cannot be written is suspected."""
    if not secrets:
        return False
    text = _text(data) if isinstance(data, Grade) else to_json(data, no_mask, indent=None)
    return text is None or secrets.mask_bytes(text) != text


def _text(grade: Grade) -> bytes | None:
    """As the store writes it, faster; None where it would have to mend something."""
    try:
        return grade.model_dump_json(by_alias=True, indent=2).encode() + b"\n"
    except ValueError:  # half of a character
        return None
