"""From paths to suites, cases and skills; and what a suite's paths may reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from skillup.errors import InvalidFilesError, Problem, UsageError

SUITE_FILE, SKILL_FILE = "eval.yaml", "SKILL.md"
WORKSPACE_FILE = "skillup.yaml"  # It only marks a workspace; what is in it is not read
DATASET_ENDINGS = frozenset({".json", ".jsonl"})
_NEVER_INSIDE = {".git", ".skillup", ".venv", "node_modules", "__pycache__", "fixtures"}
_YAML = (".yaml", ".yml")
_DOCS = "docs/writing-cases.md"


def workspace_root(start: Path) -> Path:
    """The nearest directory upwards with `skillup.yaml` or a profile in `engines/`; if there is
    none, the nearest git root; else `start`. Its profiles name commands: so none counts that anyone
    may write or that is another user's, nor one's home, and what is above, from below it.
    """
    start = start.resolve().parent if start.is_file() else start.resolve()
    home = Path.home().resolve()
    places = [start, *(up for up in start.parents if not home.is_relative_to(up))]
    with suppress(OSError):
        owners = {os.getuid(), 0, start.stat().st_uid}
        found = [(up, up.stat()) for up in places]
        places = [up for up, st in found if st.st_uid in owners and not st.st_mode & 0o002]
    for up in places:
        profiles = (file for file in (up / "engines").glob("*.y*ml") if file.is_file())
        keys = (key for file in profiles for key in _keys(file))
        if (up / WORKSPACE_FILE).is_file() or not _OF_A_PROFILE.isdisjoint(keys):
            return up
    return next((up for up in places if (up / ".git").exists()), start)


def suite_root(suite_file: Path) -> Path:
    """What a suite's relative paths start from: its directory, or that of an `evals` directory."""
    directory = suite_file.resolve().parent
    return directory.parent if directory.name == "evals" else directory


def find_suites(paths: Sequence[Path]) -> dict[Path, tuple[Path, ...]]:
    """The suites that `paths` mean, in that order, each with the case files, or folders of them,
    that are meant; none: all. Raises UsageError if a path means no suite.
    """
    found: dict[Path, tuple[Path, ...]] = {}
    for suite, only in (one for path in paths for one in _suites_of(path)):
        key = suite.resolve()
        if only is None or found.get(key) == ():
            found[key] = ()
        else:
            found[key] = tuple(dict.fromkeys((*found.get(key, ()), only)))
    return found


def _suites_of(path: Path) -> Iterator[tuple[Path, Path | None]]:
    if not path.exists():
        hint = "give a suite (eval.yaml), a folder with suites, a skill with evals/, or a case"
        raise UsageError(f"{path}: no such file or folder", hint=hint)
    if path.is_file():
        if path.suffix not in {*_YAML, *DATASET_ENDINGS}:
            hint = "suites and cases end in .yaml, datasets in .json or .jsonl"
            raise UsageError(f"{path}: not a YAML file", hint=hint)
        if path.suffix in _YAML and path.name != SUITE_FILE and is_case(path):
            yield _suite_above(path), path.resolve()
        else:
            yield path, None
        return
    below = [p for p in (path / SUITE_FILE, path / "evals" / SUITE_FILE) if p.is_file()][:1]
    if not below:
        for directory, names, files in os.walk(path):
            names[:] = sorted(n for n in names if n not in _NEVER_INSIDE and not n.startswith("."))
            if SUITE_FILE in files:
                below.append(Path(directory) / SUITE_FILE)
    yield from ((suite, None) for suite in below)
    if not below and any(is_case(file) for file in path.glob("*.y*ml")):
        yield _suite_above(path), path.resolve()
    elif not below:
        hint = f"`skillup init` writes one for a skill; by hand: {_DOCS}"
        raise UsageError(f"{path}: no {SUITE_FILE} in it or below it", hint=hint)


def _suite_above(path: Path) -> Path:
    start = path.resolve()
    for directory in start.parents if start.is_file() else (start, *start.parents):
        for candidate in (directory / SUITE_FILE, directory / "evals" / SUITE_FILE):
            if candidate.is_file():
                return candidate
    hint = f"a case belongs to a suite: write {SUITE_FILE} in its folder (`name: …`), see {_DOCS}"
    raise UsageError(f"{path}: no {SUITE_FILE} beside it or above it", hint=hint)


# A case file is distinguished from a suite file by its top-level keys, also if it has mistakes.

_KEY = re.compile(rb"(?:\{\s*)?[\"']?([A-Za-z_]+)[\"']?\s*:")
_OF_A_CASE = frozenset({b"id", b"assertions", b"scripted", b"depends_on", b"expect", b"vars"})
_OF_A_SUITE = frozenset({b"cases", b"skills", b"engine", b"environment"})
_OF_A_PROFILE = frozenset({b"engine", b"command"})


def is_case(path: Path) -> bool:
    """Whether a YAML file is a case rather than a suite."""
    keys = set(_keys(path))
    return b"input" in keys or bool(keys & _OF_A_CASE and not keys & _OF_A_SUITE)


def _keys(path: Path) -> Iterator[bytes]:
    with suppress(OSError), path.open("rb") as stream:
        yield from (match[1] for line in stream if (match := _KEY.match(line)))


def cases_beside(directory: Path) -> list[Path]:
    """Every YAML file beside the suite and in `cases/` that is no suite."""
    files = list[Path]()
    for folder in (directory, directory / "cases"):
        with suppress(OSError), os.scandir(folder) as scan:
            yaml = [e for e in scan if e.name.endswith(_YAML) and not e.name.startswith(".")]
            there = (e for e in yaml if e.is_file(follow_symlinks=False) or os.path.isfile(e.path))  # noqa: PTH113
            files += [folder / name for name in sorted(e.name for e in there)]
    # Variants of a suite stand beside it: eval-other.yaml. A case may be called evaluate.yaml.
    return [p for p in files if p.stem != "eval" and (not p.name.startswith("eval") or is_case(p))]


# What a suite may not do unless its user trusts it (`--trust`): it may come from anywhere, so its
# paths stay in the project that it lies in, and a key goes to no address that only the suite names.

TRUST = "SKILLUP_TRUST"
ALLOW = "if you trust this suite, allow it with --trust (or SKILLUP_TRUST=1)"
ADDRESS = re.compile(r"(BASE_URL|API_BASE|API_HOST|ENDPOINT|PROXY)$", re.IGNORECASE)
"""Variables by which CLIs and libraries learn where to send requests, keys included."""


def is_trusted(environment: Mapping[str, str]) -> bool:
    return environment.get(TRUST, "").strip().lower() not in ("", "0", "false", "no")


def address_problem(
    field: str, address: str, environment: Mapping[str, str], *known: str | None
) -> str | None:
    """Why no key may be sent to `address`, which a suite names in `field`; `known`: by the user."""
    if is_trusted(environment) or address in known:
        return None
    return f"`{field}: {address}` would send your key to an address that the suite names; {ALLOW}"


def project_of(root: Path) -> Path:
    """The repository or workspace that `root` lies in, but none around the user's home."""
    root, home, here = root.resolve(), Path.home().resolve(), Path.cwd()
    repository = next((up for up in (root, *root.parents) if (up / ".git").exists()), root)
    candidates = [repository, workspace_root(root), *([here] if here in root.parents else [])]
    found = [one for one in candidates if not home.is_relative_to(one)]
    return min(found, key=lambda one: len(one.parts), default=root)


def leaves(path: str, root: Path) -> bool:
    """Whether a path or glob that starts from `root` leads out of its project."""
    plain = re.split(r"[*?\[{]", path, maxsplit=1)[0]
    if ".." in Path(path[len(plain) :]).parts:
        return True
    return not (root / plain).resolve().is_relative_to(project_of(root))


def skill_problem(directory: Path) -> Problem | None:
    """Why this directory is no usable skill, as its SKILL.md or `name` is missing or unfit."""
    found = _front_matter(directory)
    return found if isinstance(found, Problem) else None


def skill_name(directory: Path) -> str:
    """The ``name`` of the front matter, else the directory's; ask `skill_problem` first."""
    return skill_text(directory, "name") or directory.resolve().name


def skill_text(directory: Path, field: str) -> str:
    """What the front matter says there; empty if that is no text."""
    found = _front_matter(directory)
    text = found.get(field) if isinstance(found, dict) else None
    return text if isinstance(text, str) else ""


def _front_matter(directory: Path) -> dict[str, object] | Problem:
    from skillup.load.yaml_reader import parse_yaml, read_text

    path = directory / SKILL_FILE
    if not os.access(path, os.F_OK):
        where = "it has" if directory.is_dir() else "no such directory:"
        fix = f"give the directory that holds {SKILL_FILE}"
        return Problem(path, 0, 0, "", f"{where} no {SKILL_FILE}", fix)
    try:
        first, *lines = read_text(path).splitlines() or [""]
        ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
        if first.rstrip() != "---":
            return {}
        if not ends:
            return Problem(path, 1, 1, "", "its front matter has no end", "close it with ---")
        front = lines[: ends[0]]
        if all(not line.strip() or line.lstrip().startswith("#") for line in front):
            return {}
        # The first fence becomes an empty line, so that problems have the lines of the file.
        data = parse_yaml("\n".join(["", *front]), path).data
    except InvalidFilesError as error:
        return error.problems[0]
    if (name := data.get("name")) is None:
        return data
    text = name if isinstance(name, str) else ""
    named = text.strip() and text.isprintable() and "/" not in text and text not in (".", "..")
    if not named or len(text.encode("utf-8", "replace")) > 255:
        what = f"{str(name)[:80]!a} cannot be a directory's name"
        return Problem(path, 2, 1, "name", what, "use letters and hyphens")
    return data
