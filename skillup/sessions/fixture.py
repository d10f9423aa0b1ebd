"""A session's workspace as a fixture: copied, but for what does not belong into one."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from skillup.errors import UsageError
from skillup.process import run_quiet
from skillup.redaction.secrets import Secrets

_SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*", "id_dsa*"),
    *("id_ecdsa*", "id_ed25519*", "*credential*", "*secret*", "auth.json", ".git-credentials"),
    *(".aws", ".ssh", ".gnupg", ".docker", ".kube", ".azure", "*.tfstate", "*.tfvars"),
)
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist")

# The forms that issuers give their keys so that they are found; shorter ones are talk about keys.
_KEY = re.compile(
    rb"""(?<![A-Za-z0-9])(?:
        sk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{8,}   # Anthropic, OpenAI, OpenRouter
        | sk-[A-Za-z0-9]{32,}                                # OpenAI's first form, and many others
        | (?:AKIA|ASIA)[0-9A-Z]{16}                          # AWS
        | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
        | glpat-[A-Za-z0-9_-]{20,}
        | xox[abeprs]-[A-Za-z0-9-]{10,}                      # Slack
        | AIza[A-Za-z0-9_-]{35}                              # Google
        | [rs]k_live_[A-Za-z0-9]{16,}                        # Stripe
        | npm_[A-Za-z0-9]{36} | pypi-[A-Za-z0-9_-]{50,} | hf_[A-Za-z0-9]{30,}
    ) | -----BEGIN\ (?:[A-Z0-9]+\ )*PRIVATE\ KEY""",
    re.VERBOSE,
)
_NEVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".skillup"})
_LARGEST = 1 << 20
_MOST_FILES = 5_000
_MOST_BYTES = 50 << 20
_GIT_SECONDS = 60.0
_OWN_FIXTURE = "leave --with-fixture out, and give the case a fixture of your own"


@dataclass(slots=True)
class Selected:
    """What of a workspace is copied, and what is not."""

    files: list[str] = field(default_factory=list)  # Relative paths, sorted
    left_out: dict[str, list[str]] = field(default_factory=dict)  # Relative paths, by the reason

    def leave(self, why: str, path: str) -> None:
        self.left_out.setdefault(why, []).append(path)


def select_files(workspace: Path, environment: Mapping[str, str]) -> Selected:
    """Everything but what git ignores, what looks like a secret, links, large files.

    Raises UsageError if the workspace is gone, is a home directory, or is too large for a fixture.
    """
    if not (workspace.is_absolute() and workspace.is_dir()):
        what = f"the session's workspace is not here any more: {workspace}"
        raise UsageError(what, hint=_OWN_FIXTURE)
    here = workspace.resolve()
    if here == Path(here.anchor) or here == Path(environment.get("HOME", here.anchor)).resolve():
        what = f"the session was held in {workspace}: too much for a fixture"
        raise UsageError(what, hint=_OWN_FIXTURE)
    selected, secrets = Selected(), Secrets.from_environment(environment)
    size = 0
    for path in _candidates(here, environment, selected):
        why = _why_not(here, path, secrets)
        if why is not None:
            selected.leave(why, path)
            continue
        selected.files.append(path)
        size += (here / path).lstat().st_size
        if len(selected.files) > _MOST_FILES or size > _MOST_BYTES:
            raise UsageError(
                f"{workspace} has more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB",
                hint="copy what the case needs by hand, and name it in `context.fixture`",
            )
    return selected


def copy_files(workspace: Path, selected: Selected, fixture: Path, *, force: bool) -> None:
    """Copies them into `fixture`.

    Raises UsageError if it is there already and not `force`, or if a link there leads elsewhere.
    """
    if os.path.lexists(fixture) and not force:
        raise UsageError(f"{fixture} is there already", hint="--force replaces the files it shares")
    inner = {fixture / parent for path in selected.files for parent in Path(path).parents}
    for place in sorted({fixture.parent, fixture, *inner}):
        if place.is_symlink():
            raise UsageError(
                f"{place} is a link: nothing is written through it",
                hint="remove the link, or give the case another name",
            )
    try:
        fixture.mkdir(parents=True, exist_ok=True)
        for path in selected.files:
            target = fixture / path
            target.parent.mkdir(parents=True, exist_ok=True)
            # A file of several names must not change under the others.
            target.unlink(missing_ok=True)
            shutil.copy2(workspace / path, target)
    except OSError as error:
        raise UsageError(f"cannot copy to {fixture}: {error.strerror or error}") from None


def _candidates(here: Path, environment: Mapping[str, str], selected: Selected) -> Iterator[str]:
    listed = anyio.run(_listed_by_git, here, environment)
    for path in sorted(listed) if listed is not None else _walked(here):
        if any(part in _NEVER for part in path.split("/")):
            selected.leave("not part of a workspace", path)
        # A repository within the repository is a directory that git lists as one name.
        elif (here / path).is_symlink() or not (here / path).is_dir():
            yield path


def _walked(here: Path) -> Iterator[str]:
    for folder, names, files in os.walk(here):
        where = Path(folder).relative_to(here)
        links = [name for name in names if (Path(folder) / name).is_symlink()]
        left = sorted(_NEVER.intersection(names))
        names[:] = sorted({*names} - {*left} - {*links})
        yield from ((where / name).as_posix() for name in sorted([*files, *links, *left]))


async def _listed_by_git(here: Path, environment: Mapping[str, str]) -> list[str] | None:
    """What git tracks or does not ignore; None where it is no repository, or there is no git."""
    git = ("git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-co", "--exclude-standard")
    own = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    done = await run_quiet(git, cwd=here, env=own, timeout_seconds=_GIT_SECONDS)
    if done.exit_code != 0 or done.start_error is not None:
        return None
    return [path for path in dict.fromkeys(done.stdout.split("\0")) if path]


def _why_not(here: Path, path: str, secrets: Secrets) -> str | None:
    file = here / path
    for part in path.casefold().split("/"):
        if any(fnmatch.fnmatchcase(part, name) for name in _SECRET_NAMES) and not any(
            fnmatch.fnmatchcase(part, name) for name in _HARMLESS
        ):
            return "may hold secrets"
    if file.is_symlink():
        return "a link"
    if not file.is_file():
        return "no regular file"
    if not os.access(file, os.R_OK):
        return "may not be read"
    if file.stat().st_size > _LARGEST:
        return f"over {_LARGEST >> 20} MiB"
    data = file.read_bytes().replace(b"\0", b"")  # as UTF-16 has it, too
    has_key = _KEY.search(data) is not None or secrets.mask_bytes(data) != data
    return "holds what looks like a key" if has_key else None
