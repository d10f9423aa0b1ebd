"""Which skills a trial gets: those under test (not in the baseline), and neighbours."""

from __future__ import annotations

from pathlib import Path

from skillup.load.model import LoadedSuite
from skillup.plan import Variant
from skillup.schema.judge import SkillRef
from skillup.schema.record import TurnError
from skillup.workspace import SkillToInstall, skill_name, skill_problem, unusable


def skills_for(suite: LoadedSuite, variant: Variant) -> list[SkillToInstall] | TurnError:
    """The skills to install; a TurnError of kind `setup` names one that is not a skill."""
    wanted: list[SkillToInstall] = []
    for ref in under_test(suite) if variant == "with_skill" else ():
        source = (suite.root / ref.path).resolve()
        problem = unusable(source, as_is=ref.as_is)
        if problem is not None:
            return TurnError(kind="setup", message=f"skill {ref.path}: {problem}")
        name = ref.name or skill_name(source)
        wanted.append(
            SkillToInstall(name, source, ref.include, ref.exclude, ref.target, as_is=ref.as_is)
        )
    for neighbour in suite.suite.neighbours:
        source = (suite.root / neighbour).resolve()
        problem = skill_problem(source)
        if problem is not None:
            return TurnError(kind="setup", message=f"neighbour {neighbour}: {problem}")
        wanted.append(SkillToInstall(skill_name(source), source, role="neighbour"))
    return wanted


def under_test(suite: LoadedSuite) -> list[SkillRef]:
    """The suite's skills; where it names none, the skill whose directory holds `evals/`."""
    if suite.suite.skills is not None:
        return suite.suite.skills
    holds_evals = suite.path.resolve().parent.name == "evals"
    if holds_evals and Path(suite.root / "SKILL.md").is_file():
        return [SkillRef(path=".")]
    return []
