"""From a source and perhaps edited cases to new grades, one record at a time."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

from skillup.app.rejudge.cases import (
    EditedCase,
    case_for,
    load_edited,
    masked,
    masked_cases,
    with_references,
)
from skillup.app.rejudge.readers import readers_for, secrets_of
from skillup.app.rejudge.sources import RecordSource, RecordSubject
from skillup.errors import UsageError
from skillup.judges.rejudge import GradeChange, RegradeItem, Regrader, compare, read_by
from skillup.plan import Selection
from skillup.reports.rejudging import RejudgeCounts
from skillup.reports.text import count, plain, shown_id
from skillup.schema.case import Case
from skillup.schema.grade import Grade, Judging
from skillup.schema.record import FileState, joined
from skillup.schema.suite import Suite
from skillup.store.files import no_mask

_AT_ONCE = 8
"""Records; how many questions are under way at once, their readers limit themselves."""
T = TypeVar("T")
Judged = tuple[str, Grade, GradeChange | None]


@dataclass(frozen=True, slots=True)
class RejudgeRequest:
    """What `skillup judge` was asked to do."""

    source: RecordSource
    cases: tuple[Path, ...] = ()
    selection: Selection = field(default_factory=Selection)
    quiet: bool = False
    as_json: bool = False
    judge_model: str | None = None
    """Who reads for the judges; None: whom the cases name."""
    last: dict[str, Grade] | None = None
    """With `--watch`: the grades of the time before, which the new ones take the place of."""

    @property
    def is_selection(self) -> bool:
        """Records that are missing were perhaps not chosen."""
        return bool(self.selection.case_globs or self.selection.tags)


class Rejudging:
    """One pass over a source."""

    def __init__(self, request: RejudgeRequest, *, compared: bool = False) -> None:
        """Judges are `compared`: all are asked, whatever a judge input says they said.

        Raises InvalidFilesError for edited cases that do not validate.
        """
        self.request, self.source = request, request.source
        edited = load_edited(request.cases) if request.cases else None
        self.secrets = secrets_of(self.source, edited)
        if edited is not None and self.source.is_masked:
            edited = masked_cases(edited, self.secrets)
        self.edited = edited
        self._by_id: dict[str, list[EditedCase]] = defaultdict(list)
        for one in edited or ():
            self._by_id[one.case.id].append(one)
        anew = bool(request.cases or request.judge_model)
        readers = readers_for(self.source, self.secrets, compared=compared, edited=anew)
        self._regrader = Regrader(readers)
        self._took: Judging | None = None
        """What judges that read have taken."""

    def judge(self, counts: RejudgeCounts) -> Iterator[Judged]:
        """Job id, new grade, and what changed (None: there is no older grade), one at a time."""
        for subject, found in self.graded(self.items(counts)):
            grade, last = self.cleaned(found), self.request.last
            older = (last or {}).get(subject.job_id) or self._recorded_grade(subject.grade)
            if last is not None:
                last[subject.job_id] = grade
            change = compare(older, grade) if older is not None else None
            counts.add(grade, change)
            yield subject.job_id, grade, change
        counts.took = self._took

    def _say(self, note: str) -> None:
        """What a user should know beside the grades."""
        sys.stderr.write(plain(f"note: {self.secrets.mask(note)}") + "\n")

    def cleaned(self, grade: Grade) -> Grade:
        """`grade` without secrets."""
        return masked(grade, self.secrets)

    def _recorded_grade(self, file: Path | None) -> Grade | None:
        try:
            text = file.read_bytes() if file is not None else b""
            return self.cleaned(Grade.model_validate_json(text))
        except (OSError, ValueError):
            return None

    def items(self, counts: RejudgeCounts) -> Iterator[tuple[RecordSubject, RegradeItem]]:
        """What is to be judged, in order; what is not is counted, and said, at the end."""
        only = self._only()
        case, suite = (only.case, only.suite) if only is not None else (None, "")
        source, seen = self.source, set[str]()
        for subject in source.subjects(case, suite):
            seen.add(subject.job_id)
            item = self._item_of(subject, only, counts)
            if item is not None:
                for note in subject.notes:
                    self._say(note)
                yield subject, item
        counts.damaged = len(source.damaged)
        for job_id, why in source.damaged.items():
            self._say(f"{shown_id(job_id)}: {why}, and was not judged")
        if not self.request.is_selection:
            counts.not_run = len(source.planned - seen - set(source.damaged))
        if counts.left_out:
            trials = count(counts.left_out, "trial")
            self._say(f"{trials} of cases that --cases lacks: not judged")

    def graded(self, items: Iterator[tuple[T, RegradeItem]]) -> Iterator[tuple[T, Grade]]:
        """In order; of some at a time, those that judges read are read at once."""
        while some := list(islice(items, _AT_ONCE)):
            grades = [self._regrader.by_rules(item) for _, item in some]
            to_read = [item for (_, item), g in zip(some, grades, strict=True) if g is None]
            read = iter(self._regrader.by_judges(to_read) if to_read else ())
            for (about, item), grade in zip(some, grades, strict=True):
                if grade is None:
                    grade = next(read)
                    self._took = joined(self._took, grade.judging)
                    judging = joined(item.record.judging, grade.judging)
                    grade = grade.model_copy(update={"judging": judging})
                yield about, grade

    def _item_of(
        self, subject: RecordSubject, only: EditedCase | None, counts: RejudgeCounts
    ) -> RegradeItem | None:
        """What it is judged by; None: it is not chosen, or is left out, which is counted."""
        record = subject.record
        tags = record.case.get("tags")
        tags = [str(tag) for tag in tags] if isinstance(tags, list) else []
        if not self.request.selection.takes(record.case_id, tags, record.branch_of):
            return None
        if self.edited is None:
            return self._recorded(subject)
        edited = case_for(record, self._by_id[record.case_id])
        if edited is None and self.source.kind != "run":
            edited = only
        if edited is None:
            counts.left_out += 1
            return None
        mask = self.secrets.mask if self.source.is_masked else no_mask
        record, contents = with_references(record, edited, mask)

        def read_file(state: FileState) -> bytes | None:
            known = contents.get(state.sha256 or "")
            return known if known is not None else subject.read_file(state)

        return RegradeItem(record, read_file, self._read_by(edited.case, edited.suite_settings))

    def _recorded(self, subject: RecordSubject) -> RegradeItem | None:
        """By the case in the record; None if that is none, which is one damaged record of many."""
        try:
            case = Case.model_validate(subject.record.case)
        except ValueError:
            what, hint = "the case in its record", "give the case as it is now with --cases"
            if self.source.kind != "run":
                problem = f"{shown_id(subject.job_id)}: this skillup cannot read {what}"
                raise UsageError(problem, hint=hint) from None
            self.source.damaged[subject.job_id] = f"{what} cannot be read ({hint})"
            return None
        return RegradeItem(subject.record, subject.read_file, self._read_by(case))

    def _read_by(self, case: Case, suite: Suite | None = None) -> Case:
        model = self.request.judge_model
        return case if model is None else read_by(case, model, Path.cwd(), suite)

    def _only(self) -> EditedCase | None:
        """The case that a single record, whatever its id, is judged by."""
        chosen = self.edited or []
        if self.source.kind == "session" and len(chosen) > 1:
            takes = self.request.selection.takes
            chosen = [e for e in chosen if takes(e.case.id, e.case.tags, e.branch_of)]
            if len(chosen) != 1:
                raise UsageError(
                    f"--cases has {len(self.edited or ())} cases, and a session is one "
                    "conversation",
                    hint="give the case's own file, or choose it with -k",
                )
        return chosen[0] if len(chosen) == 1 else None
