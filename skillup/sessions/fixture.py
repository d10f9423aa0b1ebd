"""A session's workspace as a fixture: copied, but for what does not belong into one."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import anyio

from skillup.errors import UsageError
from skillup.process import run_quiet
from skillup.redaction.secrets import Secrets

_SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", "auth.json"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "id_rsa*", "id_ed25519*"),
    *("*credential*", "*secret*", ".aws", ".ssh", ".gnupg", ".docker", ".kube", ".azure"),
)
# The forms that issuers give their keys so that they are found.
_KEY = re.compile(
    rb"(?<![A-Za-z0-9])(?:sk-(?:ant|proj|svcacct|admin|or)-[\w-]{8,}|sk-[A-Za-z0-9]{32,}"
    rb"|(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    rb"|glpat-[\w-]{20,}|xox[abeprs]-[A-Za-z0-9-]{10,}|AIza[\w-]{35}|[rs]k_live_[A-Za-z0-9]{16,})"
    rb"|-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY"
)
_NEVER = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".skillup"})
_LARGEST = 1 << 20
_MOST_FILES = 5_000


def copy_workspace(
    workspace: Path, fixture: Path, environment: Mapping[str, str]
) -> tuple[int, dict[str, list[str]]]:
    """Copies the regular files into `fixture`: how many; and the paths left out, by the reason.

    Raises UsageError if the workspace is gone, holds a home directory or more than 5,000 files, or
    if `fixture` is there already or cannot be written.
    """
    hint = "leave --with-fixture out, and give the case a fixture of your own"
    if not (workspace.is_absolute() and workspace.is_dir()):
        raise UsageError(f"the session's workspace is not here any more: {workspace}", hint=hint)
    here = workspace.resolve()
    if Path(environment.get("HOME", here.anchor)).resolve().is_relative_to(here):
        raise UsageError(f"the session ran in {workspace}: too much for a fixture", hint=hint)
    files = anyio.run(_not_ignored, here, environment)
    if len(files) > _MOST_FILES:
        raise UsageError(f"{workspace} has more than {_MOST_FILES} files", hint=hint)
    left_out: dict[str, list[str]] = {}
    secrets = Secrets.from_environment(environment)
    copied = 0
    try:
        fixture.mkdir(parents=True)
        for path in files:
            why = _why_not(here / path, path, secrets)
            if why is not None:
                left_out.setdefault(why, []).append(path)
                continue
            (fixture / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(here / path, fixture / path)
            copied += 1
    except FileExistsError:
        raise UsageError(f"{fixture} is there already", hint="remove it first") from None
    except OSError as error:
        raise UsageError(f"cannot copy to {fixture}: {error.strerror or error}") from None
    return copied, left_out


async def _not_ignored(here: Path, environment: Mapping[str, str]) -> list[str]:
    """All files below `here`, sorted; in a repository those that git does not ignore."""
    git = ("git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-co", "--exclude-standard")
    own = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    done = await run_quiet(git, cwd=here, env=own, timeout_seconds=60.0)
    # Nothing is listed where a repository above ignores all of it.
    if done.exit_code == 0 and done.stdout:
        found = set(done.stdout.split("\0")) - {""}
        kept = (path for path in found if not _NEVER & {*Path(path).parts})
        return sorted(path for path in kept if os.path.lexists(here / path))
    walked: list[str] = []
    for folder, names, files in os.walk(here):
        names[:] = sorted(set(names) - _NEVER)
        walked += ((Path(folder) / name).relative_to(here).as_posix() for name in files)
    return sorted(walked)


def _why_not(file: Path, path: str, secrets: Secrets) -> str | None:
    parts = [part for part in path.casefold().split("/") if not part.endswith(".example")]
    if any(fnmatch.fnmatchcase(part, name) for part in parts for name in _SECRET_NAMES):
        return "may hold secrets"
    if file.resolve() != file or not file.is_file():  # a link, or behind one
        return "no regular file"
    if not os.access(file, os.R_OK):
        return "may not be read"
    if file.stat().st_size > _LARGEST:
        return f"over {_LARGEST >> 20} MiB"
    data = file.read_bytes().replace(b"\0", b"")  # as UTF-16 has it, too
    has_key = _KEY.search(data) is not None or secrets.mask_bytes(data) != data
    return "holds what looks like a key" if has_key else None
