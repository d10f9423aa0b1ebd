"""`skillup bisect`: which commit of a skill, or version of a CLI, broke a case.

A binary search with noisy answers: at which position of a line did the pass rate fall?

Positions are 0 (good) to n (bad). Trials before position k pass at one rate, those from k on at a
lower one; or nothing changed. k is uniform on 1…n; the two rates are unknown, have Jeffreys' prior
Beta(½, ½), a fall of :data:`LEAST_FALL` at least, and are integrated out: a flaky case needs no
threshold, only more trials. Next is the position whose trial has the most information about k.

Sources: Horstein, Sequential transmission using noiseless feedback, IEEE Trans. Inf. Theory 9
(1963); Jedynak, Frazier, Sznitman, Twenty questions with noise, J. Appl. Probab. 49 (2012); Waeber,
Frazier, Henderson, Bisection search with noisy responses, SIAM J. Control Optim. 51 (2013).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from math import exp, inf, log, log2, pi, sin
from pathlib import Path
from typing import Any

import anyio

from skillup.adapters import ADAPTERS
from skillup.app.interruption import run_stoppable
from skillup.app.planning import RunRequest, plan_of, secrets_of_plan
from skillup.app.run_session import RunSession
from skillup.dataclass import frozen
from skillup.engines.registry import engine_of
from skillup.errors import ExitCode, InterruptedRunError, SkillupError, UsageError
from skillup.load.discover import workspace_root
from skillup.plan import Job, Plan
from skillup.process.run import run_quiet
from skillup.reports.terminal.layout import make_console, print_table
from skillup.reports.terminal.progress import PlainReporter
from skillup.reports.text import count, listed_ids, one_line, plain, say, shown_path
from skillup.schema.judge import SkillRef
from skillup.schema.record import TurnError
from skillup.stats import percent
from skillup.store import default_run_path, new_run_id
from skillup.store.files import read_regular, write_atomic
from skillup.store.places import is_run
from skillup.workspace.prepare import skills_for

LEAST_FALL = 0.15
_NO_CHANGE = 0.5  # A priori: with less, a flaky case is often said to be broken by an only commit
_RATES = [sin(pi * (point + 0.5) / 48) ** 2 for point in range(24)]  # Of equal Jeffreys weight
_LOGS = [(log(rate), log(1 - rate)) for rate in _RATES]
_LOWER = [sum(other <= rate - LEAST_FALL for other in _RATES) for rate in _RATES]
"""For each rate before the change, how many of the rates it may have fallen to."""


@frozen
class Posterior:
    """By k, what is known of it; k = 0: nothing changed. The `chances` sum to 1."""

    chances: tuple[float, ...]
    before: tuple[float, ...]  # The expected pass rate before k, if k it is
    after: tuple[float, ...]  # The same from k on

    @property
    def best(self) -> int:
        """The likeliest k."""
        return self.chances.index(max(self.chances))

    def is_sure(self, error: float) -> bool:
        """A chance of 1 − `error` / 2: it is right on average over all rates, and half of the error
        leaves room for those where it is not.
        """
        return max(self.chances) >= 1 - error / 2


def posterior(tallies: Sequence[tuple[int, int]]) -> Posterior:
    """`tallies`: passed and failed trials, by position from good to bad; two positions at least."""
    passed, failed = (sum(column) for column in zip(*tallies, strict=True))
    scale, likely = _likelihoods(passed, failed)
    weights, rate = [_NO_CHANGE * sum(likely) / len(_RATES)], _weighted(likely)[-1] / sum(likely)
    before, after, earlier = [rate], [rate], (0, 0)
    share = (1 - _NO_CHANGE) / (len(tallies) - 1) / sum(_LOWER)
    for tally in tallies[:-1]:
        earlier = earlier[0] + tally[0], earlier[1] + tally[1]
        high, good = _likelihoods(*earlier)
        low, bad = _likelihoods(passed - earlier[0], failed - earlier[1])
        # Sums over the pairs of rates: the lower ones up to the bound that the higher one sets.
        mass, moment = [0.0, *accumulate(bad)], _weighted(bad)
        pairs = [x * mass[n] for x, n in zip(good, _LOWER, strict=True)]
        weights.append(share * sum(pairs) * exp(high + low - scale))
        before.append(_weighted(pairs)[-1] / sum(pairs))
        moments = sum(x * moment[n] for x, n in zip(good, _LOWER, strict=True))
        after.append(moments / sum(pairs))
    whole = sum(weights)
    return Posterior(tuple(weight / whole for weight in weights), tuple(before), tuple(after))


def _likelihoods(passed: int, failed: int) -> tuple[float, list[float]]:
    """Of each rate, divided by the greatest; and the logarithm of that."""
    logs = [passed * a + failed * b for a, b in _LOGS]
    greatest = max(logs)
    return greatest, [exp(value - greatest) for value in logs]


def _weighted(likely: Sequence[float]) -> list[float]:
    """The sums of rate × likelihood over the first 0, 1, … rates."""
    return [0.0, *accumulate(p * x for p, x in zip(_RATES, likely, strict=True))]


def next_position(known: Posterior) -> int:
    """Where a trial tells most about k."""
    before, after = ([(p, _entropy(p)) for p in rates] for rates in (known.before, known.after))

    def information(position: int) -> float:
        passes = noise = 0.0
        for k, chance in enumerate(known.chances):
            rate, entropy = before[k] if position < k else after[k]
            passes, noise = passes + chance * rate, noise + chance * entropy
        return _entropy(passes) - noise

    return max(range(len(known.chances)), key=information)


def _entropy(rate: float) -> float:
    return -rate * log2(rate) - (1 - rate) * log2(1 - rate)


# What can have broken a case: commits of its skill, or versions of its engine's CLI.

_EVALS = "evals"
_NO_PART = {".git", ".skillup", ".venv", "node_modules", "__pycache__"}
_SECONDS = 900.0  # For each command: a CLI has hundreds of MB
_NPM = ("--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000", "--no-audit", "--no-fund")


def _output(argv: Sequence[str], cwd: Path, refused: SkillupError, **more: str) -> str:
    """What a command prints. Raises `refused`, with the command's own words, if it fails."""
    # A GIT_DIR or GIT_INDEX_FILE of a hook that started us would redirect every command.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = kept | {"LC_ALL": "C"} | more
    done = anyio.run(partial(run_quiet, argv, cwd=cwd, env=env, timeout_seconds=_SECONDS))
    if done.exit_code == 0:
        return done.stdout
    own = "it took too long" if done.timed_out else done.start_error or one_line(done.stderr, 300)
    refused.hint = own or refused.hint
    raise refused


def facts_of_files(job: Job, but: Sequence[Path]) -> str:
    """A digest of the files of the suite's directory, and of skills elsewhere; of those in `but`
    only their `evals` count.
    """
    skills = skills_for(job.suite, "with_skill")
    places = {job.suite.root.resolve()}
    if not isinstance(skills, TurnError):
        places |= {skill.source_dir for skill in skills} - {*but}
    digest = hashlib.sha256()
    for root in sorted(places):
        for folder, names, files in os.walk(root):
            place = Path(folder)
            names[:] = sorted(n for n in names if n not in _NO_PART and not is_run(place / n))
            within = [place.relative_to(skill) for skill in but if place.is_relative_to(skill)]
            if any(path.parts[:1] != (_EVALS,) for path in within):
                continue
            for path in (place / name for name in sorted(files)):
                digest.update(f"{path.relative_to(root)}\0".encode(errors="surrogatepass"))
                with suppress(OSError):
                    digest.update(hashlib.sha256(read_regular(path)).digest())
    return digest.hexdigest()


class SkillCommits:
    """Those that changed the case's skills, along first parents: each contains the one before."""

    noun = "commit"

    def __init__(self, job: Job, good: str, bad: str, scratch: Path) -> None:
        """Raises UsageError if the two are no line of commits that changed the skills."""
        found = skills_for(job.suite, "with_skill")
        if isinstance(found, TurnError) or not found:
            raise UsageError(getattr(found, "message", "the suite has no skill to search"))
        self._job, self._scratch, self._root = job, scratch, found[0].source_dir
        self._root = Path(self._git("rev-parse", "--show-toplevel").rstrip("\n")).resolve()
        inside = [s.source_dir for s in found if s.source_dir.is_relative_to(self._root)]
        version = anyio.run(engine_of(job.profile).check, job.profile, os.environ).version
        self.facts = [version, facts_of_files(job, inside)]
        names = [path.relative_to(self._root).as_posix() for path in inside]
        self._paths = [f":(top,literal){name if name != '.' else ''}" for name in names]
        # What is never installed: the cases beside a skill.
        self._paths += [f":(top,exclude,literal){Path(name, _EVALS).as_posix()}" for name in names]
        ids = [self._commit(good), self._commit(bad)]
        what = f"--good {good} is no ancestor of --bad {bad}"
        self._git("merge-base", "--is-ancestor", *ids, what=what)
        line = ("log", "--first-parent", "--reverse", "--no-show-signature", "--format=%H %s")
        lines = self._git(*line, "..".join(ids), "--", *self._paths).splitlines()
        commits = dict(text.split(" ", 1) for text in lines)
        if not commits:
            what = f"no commit between {good} and {bad} changed {', '.join(names)}"
            raise UsageError(what, hint="the CLI may have: see --cli")
        self.titles = {ids[0]: f"(good: {good})", **commits}
        self.ids = list(self.titles)

    def _commit(self, revision: str) -> str:
        given = ("--verify", "--end-of-options", f"{revision}^{{commit}}")
        return self._git("rev-parse", *given, what=f"{revision}: no such commit").strip()

    def _git(self, *arguments: str, what: str = "", cwd: Path | None = None, **env: str) -> str:
        argv = ("git", "-c", "core.hooksPath=/dev/null", *arguments)
        refused = UsageError(what or f"git {arguments[0]} failed")
        return _output(argv, cwd or self._root, refused, **env)

    def job_at(self, commit: str) -> Job | str:
        """The trial with that one; or why there can be none, whatever is tried."""
        # A skill without a name in its front matter is called as its folder.
        place = self._scratch / commit / (self._root.name or "skill")
        if not place.exists():
            place.mkdir(parents=True)
            own = {"GIT_INDEX_FILE": str(place.parent / "index"), "GIT_WORK_TREE": str(place)}
            own["GIT_DIR"] = self._git("rev-parse", "--absolute-git-dir").rstrip("\n")
            with suppress(UsageError):  # There may be none: then that is said below
                self._git("checkout", "--quiet", commit, "--", *self._paths, cwd=place, **own)

        def moved(path: str) -> str:
            source = (self._job.suite.root / path).resolve()
            inside = source.is_relative_to(self._root)
            return str(place / source.relative_to(self._root)) if inside else path

        suite = self._job.suite.suite
        skills = suite.skills if suite.skills is not None else [SkillRef(path=".")]
        skills = [skill.model_copy(update={"path": moved(skill.path)}) for skill in skills]
        update = {"skills": skills, "distractors": [moved(path) for path in suite.distractors]}
        loaded = replace(self._job.suite, suite=suite.model_copy(update=update))
        found = skills_for(loaded, "with_skill")
        if isinstance(found, TurnError):
            return found.message.replace(f"{place}/", "")
        return replace(self._job, suite=loaded)

    def describe(self, commit: str) -> str:
        how = ("-m", "--first-parent", "--format=medium", "--no-ext-diff")
        return self._git("show", *how, commit, "--", *self._paths)


class CliVersions:
    """The versions of the engine's CLI that npm has; each is installed when it is tried."""

    noun = "version"

    def __init__(self, job: Job, good: str, bad: str, cache: Path) -> None:
        """Raises UsageError for versions that are not there, SkillupError without the registry."""
        adapter = ADAPTERS.get(job.profile.engine)
        npm = adapter.npm if adapter is not None else None
        if npm is None:
            raise UsageError(f"{job.profile.engine} has no versions that npm could install")
        self._job, self._cache, (self._package, self._command) = job, cache, npm
        cache.mkdir(parents=True, exist_ok=True)
        versions = json.loads(self._npm("view", self._package, "versions", "--json"))
        if missing := ", ".join(one for one in (good, bad) if one not in versions):
            newest = f"the newest ones: {', '.join(versions[-5:])}"
            raise UsageError(f"npm has no version {missing} of {self._package}", hint=newest)
        self.ids = versions[versions.index(good) : versions.index(bad) + 1]
        if len(self.ids) < 2:
            raise UsageError(f"--bad {bad} is not later than --good {good}")
        self.titles = {good: "(good)"}
        self.facts = [facts_of_files(job, ())]

    def _npm(self, verb: str, *arguments: str) -> str:
        refused = SkillupError(f"npm {verb} {self._package} failed; is its registry reachable?")
        return _output(("npm", verb, *arguments, *_NPM), self._cache, refused)

    def job_at(self, version: str) -> Job | str:
        place = self._cache / f"{self._package.rpartition('/')[2]}-{version}"
        if not place.exists():
            unfinished = place.with_name(f"{place.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            self._npm("install", f"{self._package}@{version}", "--prefix", str(unfinished))
            unfinished.rename(place)
        command = [str(place / "node_modules" / ".bin" / self._command)]
        return replace(self._job, profile=self._job.profile.model_copy(update={"command": command}))

    def describe(self, version: str) -> str:
        return f"{self._package} {version} after {self.ids[self.ids.index(version) - 1]}\n"


# One bisection: its trials one after the other, what they say, and its file to go on from.

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
        place = home / "clis" if of_cli else Path(scratch).resolve()
        candidates = (CliVersions if of_cli else SkillCommits)(jobs[0], *ends, place)
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
