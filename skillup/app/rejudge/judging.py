"""From a source and perhaps edited cases to new grades, one record at a time."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from pydantic import BaseModel

from skillup.app import planning
from skillup.app.rejudge.sources import RecordSource, RecordSubject
from skillup.dataclass import frozen
from skillup.errors import SkillupError, UsageError
from skillup.importers.judge_debug import MockedJudge
from skillup.judges import rejudge
from skillup.load.discover import find_suites, suite_root
from skillup.load.model import LoadedCase, LoadedSuite
from skillup.plan import Selection
from skillup.redaction.secrets import Secrets, masked_bytes
from skillup.reports.rejudging import RejudgeCounts
from skillup.reports.text import count, one_line, problem_line, say
from skillup.schema.case import Case
from skillup.schema.grade import Grade
from skillup.schema.profile import Profile
from skillup.schema.record import FileState, Record, joined
from skillup.schema.suite import Suite
from skillup.store.export import ANSWERS_FOLDER
from skillup.store.files import no_mask, to_json
from skillup.store.places import RUN_FILE
from skillup.workspace.snapshot import BlobStore

if TYPE_CHECKING:
    from skillup.judges.models import Preview
    from skillup.judges.router import JudgeRouter

_AT_ONCE = 8  # Records; how many questions are under way at once, their readers limit themselves
_IN_BATCHES = 300  # Records of `--batch`: what they ask goes out together
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
Judged = tuple[str, Grade, rejudge.GradeChange | None]
"""Job id, new grade, and what changed (None: there is no older grade)."""
Edited = tuple[LoadedSuite, LoadedCase]
"""A case as its file says now, by which records are judged instead of by their own."""


@frozen
class RejudgeRequest:
    """What `skillup judge` was asked to do."""

    source: RecordSource
    cases: tuple[Path, ...] = ()
    selection: Selection = field(default_factory=Selection)
    quiet: bool = False
    as_json: bool = False
    judge_model: str | None = None  # Who reads for the judges; None: whom the cases name
    last: dict[str, Grade] | None = None
    """With `--watch`: the grades of the time before, which the new ones take the place of."""
    write: str | None = None  # Keep it as a judgement of this name
    preview: Preview | None = None  # Is told what would be asked; nobody is
    batch: bool = False  # Models are asked by their providers' batches

    @property
    def is_selection(self) -> bool:
        """Records that are missing were perhaps not chosen."""
        return bool(self.selection.case_globs or self.selection.tags)


class Rejudging:
    """One pass over a source."""

    def __init__(self, request: RejudgeRequest, *, compared: bool = False) -> None:
        """Where judges are `compared` all are asked. Raises InvalidFilesError for edited cases."""
        self.request, self.source = request, request.source
        edited = self._load_edited() if request.cases else None
        self.secrets = secrets_of(self.source, edited)
        if edited is not None and self.source.is_masked:
            edited = [
                (s, replace(one, like=self._masked_case(one.case), item_id=None))
                for s, one in edited
            ]
        self.edited = edited
        self._by_id: dict[str, list[Edited]] = defaultdict(list)
        for suite, one in edited or ():
            self._by_id[one.id].append((suite, one))
        self._recorded_case: tuple[Mapping[str, Any], Case] | None = None
        self._readers = readers_for(request, self.secrets, compared=compared)
        self.counts = RejudgeCounts()

    def judge(self) -> Iterator[Judged]:
        """One at a time."""
        for subject, found in self.graded(self.items()):
            grade, last = masked(found, self.secrets), self.request.last
            older = last.get(subject.job_id) if last is not None else None
            if older is None and (recorded := subject.grade(grade)) is not None:
                older = masked(recorded, self.secrets)
            if last is not None:
                last[subject.job_id] = grade
            change = rejudge.compare(older, grade) if older is not None else None
            self.counts.add(grade, change)
            yield subject.job_id, grade, change

    def _load_edited(self) -> list[Edited]:
        """Raises UsageError, and InvalidFilesError with all that is wrong. Warnings go to stderr.

        The models that the run was given stay its judges: what flips is to come of the cases.
        """
        from skillup.load.suites import load_paths

        given, run = self.request.judge_model, self.source.info.get("request") or {}
        ours = given or run.get("judge_model")
        usual = os.environ.get(planning.FALLBACK_VARIABLE) or run.get("judge_model_fallback")
        loaded = load_paths(self.request.cases)
        say(*map(problem_line, loaded.warnings))
        if ours and not given:
            say(f"note: the judges are {ours}, as in the run; --judge-model names others")
        suites = [
            planning.with_judge_models(suite, None if given else ours, usual)
            for suite in loaded.or_raise().suites
        ]
        found = [(suite, one) for suite in suites for one in suite.cases]
        if not found:
            raise UsageError("--cases: no case there", hint="give a suite, a folder or a case file")
        return found

    def _masked_case(self, case: Case) -> Case:
        """As a run would have recorded it. Raises UsageError if it is none without its secrets."""
        try:
            return masked(case, self.secrets, exclude_unset=True)
        except ValueError:
            what = f"{self.secrets.mask(one_line(case.id))}: a key stands where it cannot be masked"
            raise UsageError(what, hint="take the value of the key out of the case") from None

    def about(self) -> dict[str, Any]:
        """Who judges, and by what."""
        cases = [one.like.model_dump_json() for _, one in self.edited or ()]
        digest = hashlib.sha256("".join(sorted(cases)).encode()).hexdigest() if cases else None
        return {"judge_model": self.request.judge_model, "cases_digest": digest}

    def _say(self, note: str) -> None:
        say(f"note: {self.secrets.mask(note)}")

    def items(self) -> Iterator[tuple[RecordSubject, rejudge.RegradeItem]]:
        """What is to be judged, in order; what is not is counted, and said, at the end."""
        only, source, counts, seen = self._only(), self.source, self.counts, set[str]()
        case, suite = (only[1].case, only[0].name) if only is not None else (None, "")
        for subject in source.subjects(case, suite):
            seen.add(subject.job_id)
            item = self._item_of(subject, only)
            if item is not None:
                for note in subject.notes:
                    self._say(note)
                yield subject, item
        counts.damaged = len(source.damaged)
        for job_id, why in source.damaged.items():
            self._say(f"{one_line(job_id)}: {why}, and was not judged")
        if not self.request.is_selection:
            counts.not_run = len(source.planned - seen - set(source.damaged))
        if counts.left_out:
            trials = count(counts.left_out, "trial")
            self._say(f"{trials} of cases that --cases lacks: not judged")

    def graded(self, items: Iterator[tuple[T, rejudge.RegradeItem]]) -> Iterator[tuple[T, Grade]]:
        """In order; of some at a time, those that judges read are read at once."""
        while some := list(islice(items, _IN_BATCHES if self.request.batch else _AT_ONCE)):
            grades = [rejudge.by_rules(item) for _, item in some]
            to_read = [item for (_, item), g in zip(some, grades, strict=True) if g is None]
            read = iter(rejudge.by_judges(to_read, self._readers) if to_read else ())
            for (about, item), grade in zip(some, grades, strict=True):
                if grade is None:
                    grade = next(read)
                    self.counts.took = joined(self.counts.took, grade.judging)
                    judging = joined(item.record.judging, grade.judging)
                    grade = grade.model_copy(update={"judging": judging})
                yield about, grade

    def _only(self) -> Edited | None:
        """The case that a single record, whatever its id, is judged by."""
        chosen = self.edited or []
        if self.source.kind == "session":
            if self.edited is None:
                hint = "give one with --cases; `skillup session to-case` writes one"
                raise UsageError("a session has no case of its own", hint=hint)
            if len(chosen) > 1:
                takes = self.request.selection.takes_loaded
                chosen = [(suite, one) for suite, one in chosen if takes(one)]
            if len(chosen) != 1:
                what = f"--cases has {len(self.edited)} cases, and a session is one conversation"
                raise UsageError(what, hint="give the case's own file, or choose it with -k")
        return chosen[0] if len(chosen) == 1 else None

    def _item_of(self, subject: RecordSubject, only: Edited | None) -> rejudge.RegradeItem | None:
        """What it is judged by; None: it is not chosen, or is left out, which is counted."""
        record = subject.record
        tags = record.case.get("tags")
        tags = [str(tag) for tag in tags] if isinstance(tags, list) else []
        if not self.request.selection.takes(record.case_id, tags, record.branch_of):
            return None
        if self.edited is None:
            if (own := self._case_in(subject)) is None:
                return None
            return rejudge.RegradeItem(record, subject.read_file, self._read_by(own))
        edited = self._edited_for(record) or (only if self.source.kind != "run" else None)
        if edited is None:
            self.counts.left_out += 1
            return None
        mask = self.secrets.mask if self.source.is_masked else no_mask
        suite, loaded = edited
        record, contents = with_references(record, loaded.case, suite.root, mask)

        def read_file(state: FileState) -> bytes | None:
            known = contents.read_state(state)
            return known if known is not None else subject.read_file(state)

        return rejudge.RegradeItem(record, read_file, self._read_by(loaded.case, suite.suite))

    def _edited_for(self, record: Record) -> Edited | None:
        """Of the cases with the record's id that of its suite, if there are several."""
        same_id = self._by_id[record.case_id]
        own = [edited for edited in same_id if edited[0].name == record.suite]
        if len(same_id) > 1 and not own:
            suites = ", ".join(suite.name for suite, _ in same_id)
            what = f"the case {record.case_id} may be that of several suites: {suites}"
            raise UsageError(what, hint="give --cases one of them")
        return next(iter([*own[-1:], *same_id]), None)

    def _case_in(self, subject: RecordSubject) -> Case | None:
        """The case in the record; None if that is none, which is one damaged record of many."""
        case, last = subject.record.case, self._recorded_case
        if last is None or last[0] != case:  # the trials of a case come one after the other
            try:
                last = self._recorded_case = case, Case.model_validate(case)
            except ValueError:
                what, hint = "the case in its record", "give the case as it is now with --cases"
                if self.source.kind != "run":
                    problem = f"{one_line(subject.job_id)}: this skillup cannot read {what}"
                    raise UsageError(problem, hint=hint) from None
                self.source.damaged[subject.job_id] = f"{what} cannot be read ({hint})"
                return None
        return last[1]

    def _read_by(self, case: Case, suite: Suite | None = None) -> Case:
        model = self.request.judge_model
        return case if model is None else rejudge.read_by(case, model, Path.cwd(), suite)


# Edited cases.


def file_stamps(paths: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """When the files beside and below `paths`, and of their suites, were written; their sizes."""
    folders = {path if path.is_dir() else path.parent for path in paths}
    with suppress(UsageError):
        folders |= set(map(suite_root, find_suites(paths)))
    stamps = {}
    for place, names, files in chain.from_iterable(map(os.walk, folders)):
        names[:] = [n for n in names if n[0] != "." and n not in ("node_modules", "__pycache__")]
        if RUN_FILE in files:  # judging writes there
            names.clear()
            continue
        for file in files:
            with suppress(OSError):
                status = os.stat(path := os.path.join(place, file))  # noqa: PTH116, PTH118 - fast
                stamps[path] = (status.st_mtime_ns, status.st_size)
    return stamps


def with_references(
    record: Record, case: Case, root: Path, mask: Callable[[str], str]
) -> tuple[Record, BlobStore]:
    """The record with the files that `case` names as they are now; and their contents."""
    from skillup.judges.grade import as_written
    from skillup.trial.artifacts import keep_references

    contents = BlobStore(partial(masked_bytes, mask))
    variables = as_written(record, case).initial_variables
    references = record.references | keep_references(case, root, contents, variables)
    # Scripts, and the files of judges, are those beside the edited case.
    update = {"references": references, "suite_root": str(root)}
    return record.model_copy(update=update), contents


# Secrets.


def secrets_of(source: RecordSource, edited: Sequence[Edited] | None) -> Secrets:
    """What a run of the cases of `source`, or of those that are `edited`, would mask."""
    info = source.info
    recorded = info.get("profiles") or {}
    names = {profile["api_key_env"] for profile in recorded.values() if profile.get("api_key_env")}
    suites = list({suite.path: suite.suite for suite, _ in edited or ()}.values())
    users = {suite.user_simulator.engine for suite in suites if suite.user_simulator}
    profiles = []
    for name in sorted({*recorded, *filter(None, users)}) if edited is not None else ():
        with suppress(SkillupError):  # of another workspace; runs keep no values of keys
            profiles.append(planning.profile_for(Path(), os.environ, name, Path()))
    cases = list({id(one.like): one.like for _, one in edited or ()}.values())
    secrets = planning.collect_secrets(os.environ, profiles, suites, cases, names)
    # As :func:`skillup.app.planning.names_of_run` has them when a run begins.
    base = Path((info.get("request") or {}).get("directory") or ".").absolute()
    paths = (suite.get("path") for suite in (info.get("suites") or {}).values())
    places = {str(base / path) for path in paths if path}
    return secrets.sparing({str(base), *places, *(info.get("jobs") or ())})


def masked(model: M, secrets: Secrets, *, exclude_unset: bool = False) -> M:
    """`model` without secrets. Raises ValueError if it is none of its kind without them."""
    if not secrets:
        return model
    data = model.model_dump(mode="json", by_alias=True, exclude_unset=exclude_unset)
    text = to_json(data, secrets.mask, indent=None)
    same = text == to_json(data, no_mask, indent=None)
    return model if same else type(model).model_validate_json(text)


# Who answers what only a judge can.


def readers_for(request: RejudgeRequest, hidden: Secrets, *, compared: bool) -> rejudge.Judges:
    """Makes the router for a record and the case it is judged by, the same one where it can be.

    Stored answers are not asked for again; where judges are `compared` all are, and written-down
    judges are read anew, as where cases are edited.
    """
    source, preview = request.source, request.preview
    edited = bool(request.cases or request.judge_model)

    # Most runs are judged by rules alone: these are loaded only where they are needed.
    @cache
    def router_for(keys: frozenset[str], anew: bool) -> JudgeRouter:
        from skillup.app.run_session import answer_cache
        from skillup.judges.models import AnswerCache, AnswerFolder, Models
        from skillup.judges.router import JudgeRouter

        if preview is None:
            _register()
        environment = dict(os.environ)
        secrets = hidden.also_of(environment, keys)
        if anew:
            answers = AnswerCache()
        elif source.folder is not None:
            older = source.run.answers if source.run is not None else None
            answers = AnswerCache(AnswerFolder(source.folder / ANSWERS_FOLDER, secrets.mask, older))
        else:
            answers = answer_cache(None, Path.cwd(), secrets.mask, anew=False)
        answers.preview = preview
        models = Models(environment, secrets, answers)
        if request.batch:
            models.batch = lambda text: say(f"note: {text}")
            models.programs = anyio.CapacityLimiter(_AT_ONCE)  # of agents and scripts
        return JudgeRouter(models, partial(_profile, source))

    def reader(_: Record, case: Case) -> Any:
        model = case.judge_model.model if case.judge_model is not None else ""
        anew = (compared or edited) and model.startswith("scripted:")
        router = router_for(frozenset(planning.keys_of(planning.models_of((), [case]))), anew)
        results = None if compared else source.mock_results
        return router if results is None else MockedJudge(results, router)

    return reader


@cache
def _register() -> None:
    """Known as a running skillup from now on: a later one ends what a kill of this one leaves."""
    import atexit

    from skillup.process.tree import process_register
    from skillup.store.scratch import end_what_was_left, user_directory

    end_what_was_left()
    register = process_register(user_directory("processes"), own_process=True)
    with suppress(OSError):  # no place for it: records can be judged all the same
        register.__enter__()
        atexit.register(register.__exit__, None, None, None)


def _profile(source: RecordSource, name: str, _: Path) -> Profile:
    """As the run had it, else that of this workspace."""
    from skillup.importers.judge_debug import INPUT_PROFILE

    recorded = source.info.get("profiles") or {}
    if name in recorded:
        with suppress(ValueError):  # of another version; the workspace may have one of it
            return Profile.model_validate(recorded[name])
    if source.kind == "input" and name == INPUT_PROFILE:
        raise UsageError("the judge names no engine: write `engine: PROFILE` beside its type")
    return planning.profile_for(Path(), os.environ, name, Path())
