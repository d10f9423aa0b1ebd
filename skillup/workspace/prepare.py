"""Makes a trial's workspace: fixture, files, git and setup of the case's ``context``, skills."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import anyio.to_thread

from skillup.dataclass import frozen
from skillup.errors import Problem
from skillup.load.discover import SKILL_FILE, skill_name, skill_problem
from skillup.load.model import LoadedSuite
from skillup.process.run import ProcessRequest, run_process, run_quiet
from skillup.sandbox.base import NO_BOX, Box
from skillup.schema.case import Context, GitContext
from skillup.schema.judge import SkillRef
from skillup.schema.record import ErrorKind, SkillInfo, TurnError, Variant
from skillup.schema.templates import UnresolvedNameError, render
from skillup.workspace import disk
from skillup.workspace.globs import matches_any_glob

_COMMAND_CHARACTERS = 200
_EVIDENCE_CHARACTERS = 4000
_KEPT_LINES = 40
_LINE_BYTES = 1000


class PreparationError(Exception):
    def __init__(self, message: str, *, evidence: str = "", kind: ErrorKind = "setup") -> None:
        super().__init__(message)
        evidence = evidence.strip()
        if len(evidence) > _EVIDENCE_CHARACTERS:  # at their end commands say what went wrong
            evidence = f"[…]\n{evidence[-_EVIDENCE_CHARACTERS:]}"
        self.error = TurnError(kind=kind, message=message, evidence=evidence)


@frozen
class PreparedWorkspace:
    root: Path  # A real path: agents name their sessions after it
    skills: tuple[InstalledSkill, ...]
    is_empty: bool  # Nothing was put there, and nothing run that might


async def prepare_workspace(
    context: Context,
    *,
    suite_root: Path,
    destination: Path,
    variables: Mapping[str, str],
    skills: Sequence[SkillToInstall],
    skill_directories: Sequence[str],
    env: Mapping[str, str],
    marker: str,
    timeout_seconds: float,
    setup_steps: Sequence[str] = (),
    box: Box = NO_BOX,
) -> PreparedWorkspace | TurnError:
    """Fills ``destination`` (a real path, made if need be) or says what keeps it from being filled.

    In this order: fixture, inline files, git, skills, the suite's ``setup_steps``, the case's
    ``context.setup``; so setup commands see everything, and the skills are in no commit and not in
    ``git status``. ``env`` is the whole environment of the commands; each may take
    ``timeout_seconds``, and what it leaves running is ended, found by the ``marker``. Commands, and
    git, run in the trial's ``box``.
    """
    root = destination

    def place_files() -> None:
        disk.ensure_directory(root)
        if context.fixture is not None:
            source = (suite_root / context.fixture).resolve()
            if not source.is_dir():
                raise PreparationError(f"`context.fixture`: there is no directory {source}")
            # Not links that lead out: the agent would work on the original.
            disk.copy_entries(list(_checked(disk.list_tree(source), source)), source, root)
        _write_inline_files(root, context.files, None if context.literal else variables)

    def install() -> list[InstalledSkill]:
        installed = [install_skill(skill, root, skill_directories) for skill in skills]
        if installed:
            _hide_from_git(root, installed)
        return installed

    try:
        await disk.do_beside(context.fixture is None and not context.files, place_files)
        if context.git is not None:
            diff = context.git.apply_diff
            patch = (suite_root / diff).resolve() if diff is not None else None
            await _prepare_repository(_Git(root, env, timeout_seconds, box), context.git, patch)
        installed = await disk.do_beside(not skills, install)
        commands = [("environment.setup_steps", command) for command in setup_steps]
        commands += [("context.setup", command) for command in context.setup]
        for field, command in commands:
            request = ProcessRequest(
                ("sh", "-c", command), root, env, timeout_seconds=timeout_seconds, marker=marker
            )
            await _run_setup_command(box, request, f"`{field}`: `{_beginning(command)}`")
        if commands:  # one of them may have made the repository
            await anyio.to_thread.run_sync(_hide_from_git, root, installed)
    except PreparationError as failure:
        return failure.error
    except OSError as error:
        disk.refuse_full_disk(error, destination)
        where = f" ({error.filename})" if error.filename else ""
        what = f"the workspace could not be prepared: {error.strerror or error}{where}"
        fix = "see that the file can be read and the disk has room"
        return TurnError(kind="setup", message=f"{what}; {fix}")
    filled = context.fixture or context.files or context.git or installed or commands
    return PreparedWorkspace(root, tuple(installed), not filled)


def _checked(entries: Iterable[disk.Entry], root: Path) -> Iterator[disk.Entry]:
    """Raises PreparationError for what cannot be copied, and for a link that leads out."""
    for entry in entries:
        place = f"{root}/{disk.shown(entry.path)}"
        if entry.kind == "special":
            raise PreparationError(f"{place} is a FIFO, socket or device; remove or exclude it")
        if entry.kind == "link" and not disk.stays_inside(root, entry.path):
            fix = "replace it by what it points to, or by a relative link within"
            raise PreparationError(f"the symbolic link {place} leads out of {root}; {fix}")
        yield entry


def _write_inline_files(
    workspace: Path, files: Mapping[str, str], variables: Mapping[str, str] | None
) -> None:
    """Over what a fixture may have put there; without `variables` the texts are no templates."""
    for path, content in files.items():
        problem = disk.path_problem(path)
        if problem is not None:
            raise PreparationError(f"`context.files` has the path {path!r}: {problem}")
        target = workspace / path
        try:
            text = content if variables is None else render(content, variables)
            target.parent.mkdir(parents=True, exist_ok=True)
            # A new file, rather than new content: the fixture's may be read-only, or a link.
            if os.path.lexists(target):
                target.unlink()
            target.write_bytes(text.encode("utf-8", "replace"))
        except UnresolvedNameError as error:
            message = f"{error}, but `context.files` needs it for {path!r}; define it in `vars`"
            raise PreparationError(message, kind="template") from None
        except OSError as error:
            disk.refuse_full_disk(error, workspace)
            what = f"`context.files` cannot write {path!r}: {error.strerror or error}"
            fix = "is there a directory, a file or a link of the fixture in its way?"
            raise PreparationError(f"{what}; {fix}") from error


async def _run_setup_command(box: Box, request: ProcessRequest, where: str) -> None:
    """Raises PreparationError, with the end of its output, unless it exits with 0 in time."""
    last_lines: deque[bytes] = deque(maxlen=_KEPT_LINES)
    keep = lambda line: last_lines.append(line[:_LINE_BYTES])  # noqa: E731
    outcome = await box.run(request, lambda request: run_process(request, keep))
    if outcome.start_error is not None:
        message = f"{where} could not be started; is there a shell on PATH?"
        raise PreparationError(message, evidence=outcome.start_error)
    if outcome.exit_code == 0 and outcome.ended_by == "exit":
        return
    how = f"ended with exit code {outcome.exit_code}"
    if outcome.ended_by == "timeout":
        how = f"did not end within {request.timeout_seconds:g} s"
    elif outcome.ended_by == "output_limit":
        how = "wrote too much output"
    elif outcome.signal is not None:
        how = f"was ended by signal {outcome.signal}"
    output = b"\n".join(last_lines).decode(errors="replace")
    output = f"{output}\n{outcome.stderr_tail}".strip()
    own = f"{_beginning(output.splitlines()[-1])}; " if output else ""
    raise PreparationError(f"{own}{where} {how}", evidence=output)


def _beginning(command: str) -> str:
    first, *more = command.strip().splitlines() or [""]
    cut = bool(more) or len(first) > _COMMAND_CHARACTERS
    return first[:_COMMAND_CHARACTERS].strip() + " …" * cut


# The workspace as a git repository, the same on every machine: nothing of the user's own git
# configuration is read, no hook runs, nothing is fetched.

_DATE = "2000-01-01T00:00:00Z"
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
# Written into the repository, so that the agent, too, can commit without a configuration.
_USER = "[user]\n\tname = skillup\n\temail = skillup@example.invalid\n"


@frozen
class _Git:
    workspace: Path  # A real path
    env: Mapping[str, str]
    timeout_seconds: float  # Of each command
    box: Box

    async def run(self, *arguments: str, failure: str = "", stdin: bytes = b"") -> bool:
        """Runs one command; whether its exit code is 0.

        Raises PreparationError if it cannot run; with git's own words if it fails and that is a
        `failure`.
        """
        settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
        # A GIT_DIR or GIT_INDEX_FILE of a hook that started us would redirect every command.
        own = {name: value for name, value in self.env.items() if not name.startswith("GIT_")}
        done = await run_quiet(
            ["git", *settings, *arguments],
            cwd=self.workspace,
            env=own
            | {
                "HOME": "/nonexistent",
                "XDG_CONFIG_HOME": "/nonexistent",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_CONFIG_SYSTEM": "/dev/null",
                "GIT_CONFIG_NOSYSTEM": "1",
                # Or `git apply` in a directory of somebody's repository would silently do nothing.
                "GIT_CEILING_DIRECTORIES": str(self.workspace.parent),
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_AUTHOR_DATE": _DATE,
                "GIT_COMMITTER_DATE": _DATE,
                "LC_ALL": "C",
            },
            timeout_seconds=self.timeout_seconds,
            stdin=stdin,
            run=self.box.run,
        )
        if done.start_error is not None:
            what = "`context.git` needs git, which could not be started; install git"
            raise PreparationError(what, evidence=done.start_error)
        if done.timed_out:
            failure = f"git {arguments[0]} did not end within {self.timeout_seconds:g} s"
        if failure and done.exit_code != 0:
            raise PreparationError(failure, evidence=done.stderr + done.stdout)
        return done.exit_code == 0


async def _prepare_repository(git: _Git, context: GitContext, patch: Path | None) -> None:
    """Makes the repository, commits what is there, sets branch and remotes, applies the patch.

    The patch stays uncommitted. A repository that came with the fixture keeps its history.
    """
    is_new = not (git.workspace / ".git").exists()
    branch = context.checkout or "main"
    no_branch = f"`context.git.checkout`: {branch!r} cannot be a branch's name"
    if branch.startswith("-"):
        raise PreparationError(no_branch)
    if context.init:
        # Of a repository that is there it changes nothing.
        await git.run("init", "-q", "--template=", f"--initial-branch={branch}", failure=no_branch)
        config = git.workspace / ".git" / "config"
        if "[user]" not in config.read_text("utf-8", "replace"):
            with config.open("a", encoding="utf-8") as file:
                file.write(_USER)
        await git.run("add", "-A", failure="git could not add the workspace's files")
        if is_new or not await git.run("diff", "--cached", "--quiet"):
            commit = ("commit", "-q", "--allow-empty", "--no-verify", "-m", "Initial state")
            await git.run(*commit, failure="git could not commit the workspace's files")
    elif (context.checkout or context.remotes) and is_new:
        what = "`context.git` wants a branch or a remote, but the workspace is no repository"
        raise PreparationError(f"{what}; set `init: true`")
    if context.checkout is not None and not is_new:
        revision = ("rev-parse", "--verify", "-q", "--end-of-options", branch + "^{commit}")
        known = await git.run(*revision)
        command = ["checkout", "-q", branch, "--"] if known else ["checkout", "-q", "-b", branch]
        await git.run(*command, failure=f"`context.git.checkout`: git cannot check out {branch!r}")
    for remote in context.remotes:
        known = not is_new and await git.run("remote", "get-url", "--", remote.name)
        failure = f"`context.git.remotes`: git refuses the remote {remote.name!r}"
        verb = "set-url" if known else "add"
        await git.run("remote", verb, "--", remote.name, remote.url, failure=failure)
    if patch is not None:
        if not patch.is_file():
            raise PreparationError(f"`context.git.apply_diff`: there is no file {patch}")
        failure = f"`context.git.apply_diff`: {patch.name} does not apply to the workspace; "
        failure += "make it anew against the fixture and the files of this case"
        # Its file is not there for the agent's programs.
        given = await anyio.to_thread.run_sync(patch.read_bytes)
        await git.run("apply", "--whitespace=nowarn", "-", failure=failure, stdin=given)


def _hide_from_git(workspace: Path, skills: Sequence[InstalledSkill]) -> None:
    """Keeps skills out of ``git status``, if there is a repository, in its own exclude file."""
    if not (workspace / ".git").is_dir():
        return
    exclude = workspace / ".git" / "info" / "exclude"
    if not exclude.resolve().is_relative_to(workspace):  # a setup command made it a link
        return
    exclude.parent.mkdir(exist_ok=True)
    with disk.open_at_once(exclude, "a", encoding="utf-8", errors="surrogateescape") as file:
        for path in (directory for skill in skills for directory in skill.directories):
            file.write("\n{}\n".format(re.sub(r"([\\*?\[])", r"\\\1", f"/{path}/")))


# Skills are copied to where agents look for them.

_NEVER = frozenset({".git", "__pycache__", ".DS_Store", ".skillup"})
_CASES = "evals"  # the agent under test must not find the answers


@frozen
class SkillToInstall:
    name: str  # As in :func:`skill_name`, unless the suite gives another
    source_dir: Path
    include: Sequence[str] = ()  # Globs; none: everything. SKILL.md always is
    exclude: Sequence[str] = ()  # Globs; they outrank ``include``
    target: str | None = None  # In the workspace, in place of where the engine looks
    role: Literal["under_test", "distractor"] = "under_test"
    as_is: bool = False  # Without a SKILL.md, what is there is installed all the same


SkillFile: TypeAlias = tuple[str, Path, os.stat_result]
"""Its path in the skill, the file on disk, links resolved, and its status."""


@frozen
class InstalledSkill:
    info: SkillInfo
    directories: tuple[str, ...]  # Where it is, relative to the workspace


def skills_for(suite: LoadedSuite, variant: Variant) -> list[SkillToInstall] | TurnError:
    """The skills to install: those under test (not in the baseline), and distractors."""
    found: list[SkillToInstall] = []
    under_test = suite.suite.skills
    if under_test is None:  # the skill whose directory holds `evals/`
        has_file = os.path.isfile(f"{suite.root}/SKILL.md")  # noqa: PTH113 - done for every trial
        is_skill = has_file and suite.path.resolve().parent.name == "evals"
        under_test = [SkillRef(path=".")] if is_skill else []
    refs: list[tuple[Literal["under_test", "distractor"], SkillRef]]
    refs = [("under_test", ref) for ref in under_test if variant == "with_skill"]
    refs += [("distractor", SkillRef(path=path)) for path in suite.suite.distractors]
    judge = (suite.suite.judge.model or "") if suite.suite.judge is not None else ""
    written_down = judge.startswith("scripted:")  # It says what is looked for
    hidden = [Path(judge.removeprefix("scripted:")).as_posix()] if written_down else []
    for role, ref in refs:
        source = (suite.root / ref.path).resolve()
        problem = unusable(source, as_is=ref.as_is)
        if problem is not None:
            what = "skill" if role == "under_test" else "distractor"
            return TurnError(kind="setup", message=f"{what} {ref.path}: {problem}")
        name = ref.name or skill_name(source)
        files = ref.include, [*ref.exclude, *hidden]
        found.append(SkillToInstall(name, source, *files, ref.target, role, ref.as_is))
    return found


def install_skill(
    skill: SkillToInstall, workspace: Path, skill_directories: Sequence[str]
) -> InstalledSkill:
    """Copies the skill's files to ``<directory>/<name>`` for each of the engine's directories.

    ``evals/``, ``.git``, ``__pycache__``, ``.DS_Store`` and ``.skillup`` are never installed.
    Permissions are kept; links become what they point to. Raises PreparationError if the skill is
    not usable, if a link leads out of it, or if the place is taken.
    """
    name, files = skill.name, files_of_skill(skill)
    places = [f"{directory.rstrip('/')}/{name}" for directory in skill_directories]
    if skill.target is not None:
        places = [skill.target.rstrip("/")]
    directories = tuple(dict.fromkeys(places))
    for directory in directories:
        refused = f"the skill {name} cannot be installed to {directory!r}: "
        if (problem := disk.path_problem(directory)) is not None:
            raise PreparationError(refused + problem)
        place = workspace / directory
        if os.path.lexists(place):
            fix = "give skills in `skills` only, each once, and not in a fixture as well"
            raise PreparationError(f"{refused}it is there already; {fix}")
        if not place.resolve().is_relative_to(workspace.resolve()):
            raise PreparationError(f"{refused}a link of the fixture leads out of the workspace")
        for path, source, _ in files:
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    info = SkillInfo(name=name, sha256=skill_digests(files)[0], role=skill.role)
    return InstalledSkill(info, directories)


def files_of_skill(skill: SkillToInstall) -> list[SkillFile]:
    """What :func:`install_skill` installs, in order of path. Raises PreparationError as it does."""
    if (unfit := unusable(skill.source_dir, as_is=skill.as_is)) is not None:
        raise PreparationError(str(unfit))
    files = sorted(
        file
        for file in _skill_files(skill.source_dir.resolve(), skill.exclude)
        if file[0] == SKILL_FILE or not skill.include or matches_any_glob(file[0], skill.include)
    )
    if not skill.as_is and not any(path == SKILL_FILE for path, _, _ in files):
        what = f"the skill {skill.name} excludes its own {SKILL_FILE}; change `exclude`"
        raise PreparationError(what)
    return files


def skill_digests(files: Sequence[SkillFile]) -> tuple[str, dict[str, str]]:
    """SHA-256 over path, executable bit and content of all; by path, the bit and that of one."""
    whole, each = hashlib.sha256(), {}
    for path, source, status in files:
        with source.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        executable = "x" if status.st_mode & stat.S_IXUSR else "-"
        whole.update(f"{disk.shown(path)}\0{executable}\0{digest}\n".encode())
        each[disk.shown(path)] = f"{executable}{digest[:16]}"
    return whole.hexdigest(), each


def unusable(directory: Path, *, as_is: bool) -> Problem | None:
    """Why this directory cannot be installed as a skill; None if it can."""
    if as_is and directory.is_dir() and not (directory / SKILL_FILE).exists():
        return None
    return skill_problem(directory)


def _skill_files(root: Path, exclude: Sequence[str]) -> Iterator[SkillFile]:

    def never(path: str) -> bool:
        parts = path.split("/")
        return parts[0] == _CASES or not _NEVER.isdisjoint(parts)

    found = disk.list_tree(root, leave_out=lambda p, _: never(p) or matches_any_glob(p, exclude))
    for entry in _checked(found, root):
        path, source = entry.path, root / entry.path
        if entry.kind == "file":
            yield path, source, entry.status
        elif entry.kind == "link":
            real = Path(os.path.realpath(source))
            if not real.exists():
                raise PreparationError(f"the link {source} leads nowhere; exclude it")
            if never(real.relative_to(root).as_posix()):
                continue
            if not real.is_file():
                why = "leads to a directory; copy that, or exclude the link"
                raise PreparationError(f"the link {source} {why}")
            yield path, real, real.stat()
