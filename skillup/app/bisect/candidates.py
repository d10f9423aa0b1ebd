"""What can have broken a case: commits of its skill, or versions of its engine's CLI."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio

from skillup.adapters import ADAPTERS
from skillup.engines.registry import engine_of
from skillup.errors import SkillupError, UsageError
from skillup.plan import Job
from skillup.process.run import run_quiet
from skillup.reports.text import one_line
from skillup.schema.judge import SkillRef
from skillup.schema.record import TurnError
from skillup.store.files import read_regular
from skillup.store.places import is_run
from skillup.trial.setup import skills_for

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

    def __init__(self, job: Job, good: str, bad: str, _: Path, scratch: Path) -> None:
        """Raises UsageError if the two are no line of commits that changed the skills."""
        found = skills_for(job.suite, "with_skill")
        if isinstance(found, TurnError) or not found:
            raise UsageError(getattr(found, "message", "the suite has no skill to search"))
        self._job, self._scratch, self._root = job, scratch, found[0].source_dir
        self._root = Path(self._git("rev-parse", "--show-toplevel").rstrip("\n")).resolve()
        inside = [s.source_dir for s in found if s.source_dir.is_relative_to(self._root)]
        engine = engine_of(job.profile)
        version = anyio.run(engine.check, job.profile, os.environ).version
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

    def __init__(self, job: Job, good: str, bad: str, cache: Path, _: Path) -> None:
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
