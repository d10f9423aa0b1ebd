"""What two runs used that was not the same: what a difference in their verdicts may come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from skillup.history.runs import About
from skillup.schema.past_runs import Change, ChangeKind


def changes(a: About, b: About) -> list[Change]:
    """From `a` to `b`, what explains most first; what one of them does not know is no change.

    Of digests it is enough that they differ; a skill that one run did not have is empty.
    """
    return list(_changes(a, b))


def _changes(a: About, b: About) -> Iterator[Change]:
    yield from _differing("model", a.models, b.models)
    yield from _differing("cli", a.cli_versions, b.cli_versions)
    if a.repository and b.repository:  # else its skills are not known, either
        for name in sorted(a.skills.keys() | b.skills.keys()):
            before, after = a.skills.get(name, ""), b.skills.get(name, "")
            if before != after:
                old, new = a.skill_files.get(name, {}), b.skill_files.get(name, {})
                known = (old.keys() | new.keys()) if old and new else set()
                files = sorted(path for path in known if old.get(path) != new.get(path))
                yield Change(kind="skill", name=name, before=before, after=after, files=files)
    yield from _differing("case", a.cases, b.cases)
    yield from _differing("profile", a.profiles, b.profiles)
    yield from _differing("skillup", {"": a.skillup_version}, {"": b.skillup_version})
    yield from _differing("host", {"": a.host}, {"": b.host})
    yield from _differing("commit", {"": _commit(a)}, {"": _commit(b)})


def _differing(kind: ChangeKind, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[Change]:
    for name, after in b.items():
        before = a.get(name)
        if before and after and before != after:
            yield Change(kind=kind, name=name, before=before, after=after)


def _commit(about: About) -> str:
    return f"{about.commit[:12]}{' with uncommitted changes' if about.dirty else ''}"
