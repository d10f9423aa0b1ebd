"""One bisection: its trials one after the other, what they say, and its file to go on from."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from skillup.app.bisect.candidates import CliVersions, SkillCommits
from skillup.app.bisect.search import Posterior, next_position, posterior
from skillup.app.interruption import run_stoppable
from skillup.app.planning import RunRequest, plan_of, secrets_of_plan
from skillup.app.run_session import RunSession
from skillup.errors import ExitCode, InterruptedRunError, SkillupError, UsageError
from skillup.load.discover import workspace_root
from skillup.plan import Job, Plan
from skillup.reports.terminal.layout import make_console, print_table
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.text import count, listed_ids, one_line, plain, say, shown_path
from skillup.stats import percent
from skillup.store import default_run_path, new_run_id
from skillup.store.files import write_atomic

_SHORT = 12
_VERDICTS = ("PASS", "FAIL")
_ERRORS = 3  # After so many, and no verdict, a candidate is not tried again
_ERRORS_IN_A_ROW = 6  # Not the candidates' fault, but the login's, the network's …
_AGAIN = "the same command"


def bisect(
    run: RunRequest, ends: tuple[str, str], *, of_cli: bool, error: float, most_trials: int | None
) -> int:
    """Search from good to bad (`ends`), and print the answer; the exit code."""
    jobs = [job for job in plan_of(run)[0].jobs if job.variant == "with_skill"]
    if len(jobs) != 1:
        names = listed_ids([job.id for job in jobs])
        raise UsageError(f"bisect is about one case with one engine, and these match: {names}")
    home = default_run_path(workspace_root(run.base), "").parent
    with tempfile.TemporaryDirectory(prefix="skillup-bisect-") as scratch:
        places = home / "clis", Path(scratch).resolve()
        candidates = (CliVersions if of_cli else SkillCommits)(jobs[0], *ends, *places)
        bisection = Bisection(run, jobs[0], candidates, home / "bisect")
        known = bisection.search(error, most_trials)
        bisection.print_answer(known, error)
    return ExitCode.PASSED if known.is_sure(error) and known.best else ExitCode.FAILED


class Bisection:
    """The trials so far; each is a run of its own beside the file that lists them."""

    def __init__(
        self, run: RunRequest, job: Job, candidates: SkillCommits | CliVersions, home: Path
    ) -> None:
        """Goes on with an earlier search for the same, if its file is below `home`."""
        self._run, self._job, self._candidates, self._ids = run, job, candidates, candidates.ids
        models = job.suite.suite, job.loaded.case, job.profile
        facts = [[model.model_dump(mode="json") for model in models], run.variables, self._ids]
        facts.append(candidates.facts)
        text = json.dumps(facts, sort_keys=True).encode(errors="surrogatepass")
        self.folder = home / hashlib.sha256(text).hexdigest()[:_SHORT]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = self.folder / "bisect.json"
        self._mask = secrets_of_plan(Plan((job,)), run.base, os.environ).mask
        self.trials: list[dict[str, Any]] = []  # {at, status, error, reason, run}
        if self._file.exists():
            self.trials = json.loads(self._file.read_bytes())["trials"]

    def search(self, error: float, most_trials: int | None) -> Posterior:
        """Run trials until the answer is sure, or there are no more to be had."""
        span = f"{count(len(self._ids) - 1, self._candidates.noun)} after good, up to bad"
        say(f"{span}; {count(len(self.trials), 'trial')} in {shown_path(self._file)}")
        while True:
            tallies = self.tallies()
            known = posterior(list(tallies.values()))
            for trial in self.trials[-1:]:
                told = f"likeliest: {self._named(known)} {percent(max(known.chances))}"
                told = told if trial["status"] in _VERDICTS else one_line(trial["reason"])
                say(f"{len(self.trials):>3}  {trial['status']:<5}  {trial['at'][:_SHORT]}  {told}")
            # The two ends come first: if one cannot be tested, nothing else is of use.
            ends = [at for at in (self._ids[-1], self._ids[0]) if not any(tallies[at])]
            if (known.is_sure(error) and not ends) or len(self.trials) >= (most_trials or inf):
                return known
            self._add(ends[0] if ends else list(tallies)[next_position(known)])
            self._check_errors()

    def tallies(self) -> dict[str, tuple[int, int]]:
        """Passed and failed trials from good to bad.

        Without those that can have no trial, or met too many errors: they count as the next one.
        """
        counts = Counter((trial["at"], trial["status"]) for trial in self.trials)
        errors: Counter[str] = Counter()
        for trial in self.trials:
            errors[trial["at"]] += _ERRORS if trial["error"] == "setup" else 1
        tallies = {at: (counts[at, "PASS"], counts[at, "FAIL"]) for at in self._ids}
        return {at: tally for at, tally in tallies.items() if any(tally) or errors[at] < _ERRORS}

    def _named(self, known: Posterior) -> str:
        """The likeliest culprit, or it and those before it that cannot be told from it."""
        line = list(self.tallies())
        first, last = (self._ids.index(line[max(0, known.best - n)]) for n in (1, 0))
        return " or ".join(at[:_SHORT] for at in self._ids[first + 1 : last + 1]) or "no difference"

    def _add(self, at: str) -> None:
        """One more trial there; the file knows of it when it is judged."""
        job = self._candidates.job_at(at)
        if isinstance(job, str):
            trial = {"at": at, "status": "ERROR", "error": "setup", "reason": job, "run": ""}
            return self._write([*self.trials, trial])
        path, plan = self.folder / new_run_id(), Plan((job,))
        # With the same seed the scripted engine would draw the same each time.
        run = replace(self._run, seed=len(self.trials))
        with RunSession(run, plan, path=path, own_process=True) as session:
            reporter = PlainReporter(plan, make_console, quiet=True)
            work = partial(session.run, reporter)
            interrupted = run_stoppable(work, reporter.stopping, _AGAIN)
            line, stop = session.lines.get(job.id), session.options.stopping.reason
            if line is not None:
                trial = {"at": at, "status": line.status, "error": line.error_kind or ""}
                trial |= {"reason": self._mask(line.reason), "run": path.name}
                self._write([*self.trials, trial])
            session.conclude(interrupted=interrupted)
        if interrupted:
            raise InterruptedRunError("interrupted", hint=f"go on with {_AGAIN}")
        if line is None:
            raise SkillupError(stop.message if stop else "the trial was not run")
        return None

    def _write(self, trials: list[dict[str, Any]]) -> None:
        self.trials = trials
        data = {"schema_version": "skillup.bisect/1", "case": self._job.id, "trials": trials}
        write_atomic(self._file, json.dumps(data, indent=1).encode())

    def _check_errors(self) -> None:
        """Raises SkillupError if the latest are not those of a candidate between the ends."""
        last, trial = self.trials[-_ERRORS_IN_A_ROW:], self.trials[-1]
        met = [t for t in last if t["status"] not in _VERDICTS and t["error"] != "setup"]
        if not {self._ids[0], self._ids[-1]} <= set(self.tallies()) or len(met) == _ERRORS_IN_A_ROW:
            # Errors are forgotten, or the same command would end here at once.
            self._write([t for t in self.trials if t["status"] in _VERDICTS])
            look = f"see skillup show {shown_path(self.folder / trial['run'])}; " if met else ""
            what = f"no verdict at {trial['at'][:_SHORT]}: {trial['reason']}"
            raise SkillupError(what, hint=f"{look}once that is mended, go on with {_AGAIN}")

    def print_answer(self, known: Posterior, error: float) -> None:
        """Answer, trials, chances, and what the culprit changed, on stdout."""
        tallies, chance = self.tallies(), max(known.chances)
        sure = f"{percent(chance)} sure after {count(len(self.trials), 'trial')}"
        if not known.is_sure(error):
            sure = f"best answer so far, only {sure}; an error of {percent(error)} needs more"
        what = f"broke {self._job.loaded.case.id}" if known.best else "between good and bad"
        sys.stdout.write(plain(f"{self._named(known)} {what} ({sure})\n\n"))
        rows = []
        for n, (at, tally) in enumerate(tallies.items()):
            if any(tally) or known.chances[n] >= 0.01:
                passes, share = f"{tally[0]}/{sum(tally)}", percent(known.chances[n])
                title = one_line(self._candidates.titles.get(at, ""))
                rows.append((at[:_SHORT], passes, share if n else "", title))
        rows.append(("no difference", "", percent(known.chances[0]), ""))
        heads = (self._candidates.noun, "passed", "chance", "")
        print_table(make_console(sys.stdout), rows, heads, align="lrrl", style="")
        if known.best and chance > 0.5:
            text = self._candidates.describe(list(tallies)[known.best])
            sys.stdout.write("\n" + plain(self._mask(text)))
        for failed in [t["run"] for t in self.trials if t["status"] == "FAIL"][-1:]:
            say(f"look: skillup show {shown_path(self.folder / failed)}")
