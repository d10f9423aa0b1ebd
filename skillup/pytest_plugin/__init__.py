"""Cases as pytest items: ``pytest --skillup PATH``; see docs/pytest.md.

Every pytest of an environment that has skillup imports this module, so it imports nothing itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("skillup", "cases of agent skills, run and judged by skillup")
    group.addoption(
        "--skillup",
        action="append",
        metavar="PATH",
        help="collect the cases of a suite, a folder of suites, a skill with evals/, or one case; "
        "repeatable",
    )
    group.addoption(
        "--skillup-engine",
        action="append",
        metavar="NAME",
        help="a profile, an adapter or a file, as `skillup run --engine`; repeatable",
    )
    group.addoption("--skillup-model", metavar="NAME", help="outranks the profile's model")
    group.addoption("--skillup-trials", metavar="N", type=int, help="run each case N times")
    group.addoption(
        "--skillup-baseline", action="store_true", help="run each case without the skill, too"
    )
    group.addoption(
        "--skillup-out", metavar="DIR", help="the run directory; default: .skillup/runs/…"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("skillup", None):
        from skillup.pytest_plugin.plugin import SkillupPlugin

        config.pluginmanager.register(SkillupPlugin(config), "skillup-cases")
