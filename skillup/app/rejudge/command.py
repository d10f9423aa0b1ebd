"""`skillup judge` from request to screen: one judging, judges compared, or what would be asked."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from skillup import __version__
from skillup.analysis import analyse
from skillup.app.rejudge.judging import Judged, RejudgeRequest, Rejudging, file_stamps, masked
from skillup.app.rejudge.sources import RecordSource
from skillup.dataclass import mutable
from skillup.errors import ExitCode, SkillupError, UsageError
from skillup.judges import rejudge
from skillup.judges.labels import Texts, against_labels, read_labels, texts_of
from skillup.judges.models import Preview, StoredAnswer
from skillup.judges.question import parse_model
from skillup.reports import rejudging
from skillup.reports.result import exit_code
from skillup.reports.terminal.layout import make_console, print_line, print_table
from skillup.reports.text import Labels, count, money, plain, say, tokens
from skillup.schema.grade import Grade
from skillup.schema.record import total_cost, utc_now
from skillup.store import RunDirectory
from skillup.store.files import to_json
from skillup.store.stored_run import ORIGINAL

_LOOK_SECONDS = 0.5
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,80}")
_CHARACTERS = 4  # Of a token, as a rule of thumb
_TEXTS = ("system", "prompt", "question")  # Of what is asked; shown as they are
_NOT_SEEN = "what hangs on a question without an answer (behind a gate, say) is not among them"


def judge_again(request: RejudgeRequest) -> int:
    """Judge and show; the exit code. Raises UsageError if nothing was there to judge."""
    judging, source = Rejudging(request), request.source
    judged, kept, counts = judging.judge(), dict[str, Grade](), judging.counts
    if request.write is not None:
        check_new_name(source, request.write)
        judged = (one for one in judged if kept.setdefault(one[0], one[1]))
    if (by := source.info.get("graded_by")) and not source.since:
        who = f"{by['name']} ({by.get('judge_model') or 'the judges of the cases'})"
        say(f"note: the run's grades are those of its judgement {who}")
    if request.as_json:
        _write_json(judged, request, judging)
    else:
        _show(judged, request, judging)
    if kept and request.write is not None:
        with RunDirectory.open(source.path, writable=True) as run:
            run.write_judgement(request.write, kept, judging.about())
    if counts.damaged:
        return ExitCode.ERROR
    if counts.total:
        return exit_code(counts.summary(), counts.not_run, source.stopped)
    what = f"{source.path} holds no finished trial, or none that is chosen"
    hint = "see -k, --tag and --cases; skillup run --resume runs what is missing"
    raise UsageError(what, hint=hint)


def _write_json(judged: Iterator[Judged], request: RejudgeRequest, judging: Rejudging) -> None:
    head: dict[str, Any] = {
        "schema_version": rejudging.JUDGEMENT_VERSION,
        "judged_at": utc_now(),
        "skillup_version": __version__,
        "source": str(request.source.path),
        "by": [str(path) for path in request.cases],
        "case_globs": list(request.selection.case_globs),
        "tags": list(request.selection.tags),
        "judge_model": request.judge_model,
        "since": request.source.since,
    }
    source, rows, counts, analysis = request.source, list(judged), judging.counts, None
    if source.kind == "run":
        info, lines = source.info, counts.lines
        if request.is_selection or request.cases:  # what is missing was not chosen
            analysis = analyse(lines, info)
        else:
            missing = sorted(source.planned - {job_id for job_id, _, _ in rows})
            saved = sorted(source.not_needed)
            analysis = analyse(lines, info, not_run=missing, not_needed=saved)
    head = json.loads(to_json(head, judging.secrets.mask, indent=None))
    sys.stdout.write(rejudging.judgement_json(head, rows, counts, analysis))


def _show(judged: Iterator[Judged], request: RejudgeRequest, judging: Rejudging) -> None:
    console, source, counts = make_console(), request.source, judging.counts
    # A case's own id may hold slashes.
    labels = Labels(job.rsplit("/", 3)[1:] for job in source.planned)
    if source.kind == "session" and source.path.is_dir():
        labels.several = [False, False, True]
    for job_id, grade, change in judged:
        if request.quiet and not change and change is not None:
            continue
        for line in rejudging.judged_lines(labels.label(*job_id.rsplit("/", 3)), grade, change):
            print_line(console, line)
    if counts.total:
        compared = source.kind not in ("session", "input")
        console.print()
        print_line(console, rejudging.counts_line(counts, compared=compared))
        if counts.took is not None:
            calls, stored, total, cost = rejudging.took_words(counts.took.model_dump())
            words = f"calls {calls}, of them stored {stored}, tokens {total}, cost {cost}"
            by = ", by batches" if request.batch else ""
            print_line(console, f"judges that read{by}: {words}")


def check_new_name(source: RecordSource, name: str) -> None:
    """Raises UsageError unless the judgement `name` could be kept."""
    if not _NAME.fullmatch(name) or name in (ORIGINAL, rejudge.RECORDED):
        hint = "letters, digits, dots, dashes and underscores; not `original`, not `recorded`"
        raise UsageError(f"--write {name}: that is no name for a judgement", hint=hint)
    if source.run is None:
        raise UsageError("--write keeps a judgement of a run", hint="keep the output of --json")
    if name in source.run.judgements():
        raise UsageError(f"--write {name}: it is there already", hint="choose another name")


def judge_on_changes(request: RejudgeRequest, report: Callable[[SkillupError], object]) -> int:
    """Judge now and after each change, until Ctrl-C, which is a KeyboardInterrupt."""
    seen = None
    while True:
        # Looked at before it is read: what changes meanwhile is noticed the next time.
        if (stamps := file_stamps(request.cases)) != seen:
            seen = stamps
            try:
                judge_again(request)
            except SkillupError as error:  # a file may just be half written
                report(error)
            say("watching the files of --cases; Ctrl-C ends")
        time.sleep(_LOOK_SECONDS)


# How good are the judges? `--against` and `--labels`.


def compare_judges(
    request: RejudgeRequest, against: Sequence[str], labels_file: Path | None
) -> int:
    """Judge by each judge of `against` in place of the cases' own, compare, show; the exit code.

    `labels_file` is `--labels`. Raises UsageError if there is nothing to compare,
    InvalidFilesError for wrong labels or cases.
    """
    labels = read_labels(labels_file) if labels_file is not None else []
    if labels_file is not None and not labels:
        hint = "write pass or fail into the column `label`, or use `skillup label`"
        raise UsageError(f"{labels_file} has no label yet", hint=hint)
    columns = _columns(request, against)
    judging = Rejudging(request, compared=bool(against))
    texts: Texts = {}  # The label file's jobs alone: of a long run they are much
    labelled, trials = {label.job for label in labels}, 0

    def add(column: rejudge.JudgeColumn, job: str, found: Grade) -> None:
        grade = masked(found, judging.secrets)
        column.add(job, grade)
        if labelled & {job, job.rsplit("/", 3)[0]}:
            texts.update(texts_of(job, grade))

    def asked() -> Iterator[tuple[tuple[rejudge.JudgeColumn, str], rejudge.RegradeItem]]:
        nonlocal trials
        for subject, item in judging.items():
            trials += 1
            # What judges took during the run is not theirs.
            anew = replace(item, record=item.record.model_copy(update={"judging": None}))
            for column in columns:
                known = None
                if column.name in (rejudge.RECORDED, request.source.since):
                    known = subject.grade(None)
                if known is not None:
                    add(column, subject.job_id, known)
                    continue
                case = item.case
                if column.model is not None:
                    case = rejudge.judged_by(case, column.model, Path.cwd())
                yield (column, subject.job_id), replace(anew, case=case)

    for (column, job), grade in judging.graded(asked()):
        add(column, job, grade)
    if not trials and not judging.counts.damaged:
        raise UsageError("there is no record to judge", hint="see -k, --tag and --cases")
    scores = {c.name: against_labels(c.verdicts, labels, texts) for c in columns if labels}
    if labels and all(len(score.unmatched) == len(labels) for score in scores.values()):
        hint = "write one with `skillup label`"
        raise UsageError(f"{labels_file}: no label is of anything that was judged", hint=hint)
    pairs = rejudge.pairs_of(columns) if against else []
    data = rejudging.panel_data(str(request.source.path), columns, pairs, scores, trials)
    if request.as_json:
        sys.stdout.write(json.dumps(data, ensure_ascii=True, indent=2) + "\n")
    elif against or scores:
        rejudging.print_panel(data, make_console(), quiet=request.quiet)
    failed = any(column.failures() for column in columns)
    return ExitCode.ERROR if failed or judging.counts.damaged else ExitCode.PASSED


def _columns(request: RejudgeRequest, against: Sequence[str]) -> list[rejudge.JudgeColumn]:
    others = [rejudge.JudgeColumn(name, name) for name in against]
    if len(others) > 1:
        return others
    was_judged = request.source.kind not in ("session", "input")
    if not others:
        recorded = request.source.since or rejudge.RECORDED
        return [rejudge.JudgeColumn(recorded if was_judged and not request.cases else rejudge.NOW)]
    if not was_judged:
        hint = "give --against a second time"
        raise UsageError("there is no recorded grade to compare with", hint=hint)
    return [rejudge.JudgeColumn(request.source.since or rejudge.RECORDED), *others]


# What would be asked: `--show-prompt` and `--estimate`. Nobody is.


def _preview(request: RejudgeRequest, each: Preview) -> int:
    """Every question once, in the order in which they come up; the exit code."""
    seen = set[str]()

    def once(key: str, asked: dict[str, Any], stored: StoredAnswer | None) -> None:
        if key not in seen:
            seen.add(key)
            each(key, asked, stored)

    judging = Rejudging(replace(request, preview=once))
    for _ in judging.graded(judging.items()):
        pass
    return ExitCode.ERROR if judging.counts.damaged else ExitCode.PASSED


def show_questions(request: RejudgeRequest) -> int:
    """Each with its key and its stored answer, on stdout; as JSON, each on a line."""
    number = missing = 0

    def show(key: str, asked: dict[str, Any], stored: StoredAnswer | None) -> None:
        nonlocal number, missing
        number, missing = number + 1, missing + (stored is None)
        answer = stored.model_dump(mode="json", exclude={"asked"}) if stored else None
        if request.as_json:
            sys.stdout.write(json.dumps({"key": key, "asked": asked, "stored": answer}) + "\n")
            return
        texts = {name: text for name, text in asked.items() if name in _TEXTS}
        settings = {k: v for k, v in asked.items() if k not in (*_TEXTS, "answer")}
        parts = {"asked": settings, **texts}
        parts |= {"form of the answer": asked["answer"]} if "answer" in asked else {}
        sys.stdout.write(f"===== question {number}: {key} =====\n")
        for title, part in (parts | {"stored answer": answer or "no answer is stored"}).items():
            text = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, indent=2)
            sys.stdout.write(plain(f"----- {title} -----\n{text}\n"))
        sys.stdout.write("\n")

    code = _preview(request, show)
    rest = f", {missing} without an answer: {_NOT_SEEN}" if missing else ""
    say(f"{count(number, 'question')}{rest}")
    return code


@mutable
class _Asked:
    """What one model, or agents, are asked."""

    questions: int = 0
    stored: int = 0
    input_tokens: int | None = 0  # None: what an agent reads is not known before
    input_cost_usd: float | None = 0.0  # None: not known


def estimate_cost(request: RejudgeRequest) -> int:
    """Requests, input tokens and what they cost, by model."""
    found: dict[str, _Asked] = {}

    def add(_: str, asked: dict[str, Any], stored: StoredAnswer | None) -> None:
        agent = asked.get("agent_judge")
        one = found.setdefault(f"agent {agent}" if agent else asked["model"], _Asked())
        one.questions += 1
        if stored is not None:
            one.stored += 1
        elif agent:
            one.input_tokens = one.input_cost_usd = None
        else:
            sent = (asked["system"], asked["prompt"], json.dumps(asked["answer"]))
            took = sum(map(len, sent)) // _CHARACTERS
            paid = took // 2 if request.batch else took
            cost = None if asked["base_url"] else _price(asked["model"], paid)
            one.input_tokens = (one.input_tokens or 0) + took
            known = None not in (cost, one.input_cost_usd)
            one.input_cost_usd = total_cost([one.input_cost_usd, cost]) if known else None

    code = _preview(request, add)
    if request.as_json:
        sys.stdout.write(json.dumps({name: asdict(one) for name, one in found.items()}) + "\n")
        return code
    console, rows = make_console(sys.stdout), []
    for name, one in found.items():
        counts = map(str, (one.questions, one.stored, one.questions - one.stored))
        rows.append([name, *counts, tokens(one.input_tokens), money(one.input_cost_usd)])
    heads = ["", "questions", "stored", "to ask", "input tokens", "their cost"]
    print_table(console, rows, heads)
    print_line(console, f"At least that: tokens are characters / {_CHARACTERS}, answers cost more,")
    print_line(console, f"and {_NOT_SEEN}.")
    return code


def _price(model: str, input_tokens: int) -> float | None:
    """USD; 0 for a written-down judge; None where no price is known."""
    provider, name = parse_model(model)
    if provider == "scripted":
        return 0.0
    with suppress(ImportError, LookupError):
        from genai_prices import Usage, calc_price

        family = provider.partition("-")[0]
        price = calc_price(Usage(input_tokens=input_tokens), name, provider_id=family)
        return float(price.total_price)
    return None
