"""Whole judges asked in tests: a place for them, and a reader that knows no others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from skillup.errors import UsageError
from skillup.judges.artifacts import JudgePlace
from skillup.judges.evaluate import JudgeRequest, UsageTracker
from skillup.judges.models import AnswerCache, Models
from skillup.judges.router import JudgeRouter, judge_by_program
from skillup.ratelimit import RateLimiter
from skillup.redaction.secrets import Secrets
from skillup.schema.case import Case
from skillup.schema.grade import CheckResult
from skillup.schema.judge import JudgeConfig
from skillup.schema.profile import Profile
from skillup.schema.record import TurnError
from tests.support.records import Recorded

SECRET = "sk-hidden-0123456789"
CASE = Case.model_validate({"input": {"prompt": "go"}})


@dataclass
class Bench:
    """A suite's directory, and judges that are asked of records."""

    base: Path
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    own: Profile = field(default_factory=lambda: Profile(name="scripted", engine="scripted"))
    environment: Mapping[str, str] = field(default_factory=dict)
    usage: UsageTracker = field(default_factory=UsageTracker)
    rate_limiter: RateLimiter = field(default_factory=lambda: RateLimiter(0))
    """As it is, refusals are errors."""
    answers: AnswerCache | None = None  # None: none are kept

    @property
    def calls(self) -> int:
        return self.usage.judging.calls if self.usage.judging is not None else 0

    @property
    def suite(self) -> Path:
        return self.base / "suite"

    def write(self, path: str, content: str, *, executable: bool = True) -> Path:
        file = self.suite / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(0o755 if executable else 0o644)
        return file

    def place(self) -> JudgePlace:
        """Where judges judge; `SECRET` is masked."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.base), **self.environment}
        secrets, kept = Secrets({"KEY": SECRET}), self.answers or AnswerCache()
        models = Models(environment, secrets, kept, self.rate_limiter)
        return JudgePlace(models, self.base / "scratch", self._profile, self.suite)

    def judge(self, judge: Mapping[str, Any], recorded: Recorded) -> CheckResult:
        config = JudgeConfig.model_validate(judge)
        request = JudgeRequest(recorded.context(), "judge", CASE, judge=config)
        (result,) = anyio.run(judge_by_program, request, self.usage, self.place())
        return result

    def problem_before(self, **case: Any) -> TurnError | None:
        place = self.place()
        router = JudgeRouter(place.models, lambda name, _: place.profiles(name or None))
        read = Case.model_validate({"input": {"prompt": "go"}, **case})
        return anyio.run(router.problem, read, self.suite, "")

    def _profile(self, name: str | None) -> Profile:
        if name is None:
            return self.own
        if name not in self.profiles:
            raise UsageError(f"there is no engine `{name}`")
        return self.profiles[name]
