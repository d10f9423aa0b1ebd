"""Where the trials of a run are run: `--executor` and `--scheduler`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from skillup.app.engines import root_with_engines
from skillup.app.planning import names_of_run
from skillup.app.request import RunRequest
from skillup.errors import SkillupError, UsageError
from skillup.load.discover import find_suites, workspace_root
from skillup.plan import Plan
from skillup.redaction.secrets import Secrets

if TYPE_CHECKING:
    from skillup.executors.cluster.client import Cluster

_EXECUTORS = ("local", "dask")


def check_executor(request: RunRequest, *, keep: bool) -> None:
    """Raises UsageError for what does not go together, SkillupError if the extra is missing."""
    local, scheduler = request.executor == "local", request.scheduler
    address = re.fullmatch(r"(tcp|tls|ucx|wss?)://\S+:\d+", scheduler or "")
    problems = {
        f"--executor {request.executor}: the executors are {', '.join(_EXECUTORS)}": (
            request.executor not in _EXECUTORS
        ),
        f"--scheduler {scheduler} is for --executor dask only": local and scheduler is not None,
        "--executor dask needs a cluster": not local and scheduler is None,
        f"--scheduler {scheduler}: no address of a Dask scheduler": not local and not address,
        "--keep-workspaces cannot be used with --executor dask: workspaces are on the workers": (
            keep and not local
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise UsageError(
                problem, hint="for example --executor dask --scheduler tcp://host:8786"
            )
    if local:
        return
    try:
        installed = find_spec("distributed") is not None
    except ImportError:
        installed = False
    if not installed:
        raise SkillupError(
            "--executor dask needs the extra `cluster`, which is not installed",
            hint="pip install 'skillup-eval[cluster]'",
        )


def cluster_for(request: RunRequest, plan: Plan, environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that runs the plan, with the files that are sent there; None: it is run here.

    Raises SkillupError if the files cannot be sent, or hold a credential of `environment`.
    """
    scheduler = request.scheduler
    if scheduler is None or request.executor == "local":
        return None
    from skillup.executors.cluster.bundle import pack
    from skillup.executors.cluster.client import Cluster

    base = request.base.resolve()
    paths = [(base / path).resolve() for path in request.paths]
    files = {n: (base / n).resolve() for n in request.engines if n.endswith((".yaml", ".yml"))}
    suites = [found.path.resolve() for found in find_suites(paths)]
    roots = [workspace_root(base), *(workspace_root(suite) for suite in suites)]
    roots += [root_with_engines(base, suite) for suite in suites]
    roots = [base, *dict.fromkeys(root.resolve() for root in roots)]
    parallel = request.parallel
    request = replace(
        request,
        directory=str(base),
        paths=tuple(map(str, paths)),
        engines=tuple(str(files.get(name, name)) for name in request.engines),
        # Each task is a few trials; the rest is decided here.
        executor="local",
        scheduler=None,
        parallel=1,
        until_decided=False,
        max_fail=None,
        max_cost_usd=None,
        max_tokens=None,
        time_limit=None,
    )
    secrets = Secrets.from_environment(environment, {job.profile.api_key_env for job in plan.jobs})
    secrets = secrets.sparing(names_of_run(plan, base))
    sent = json.dumps(asdict(request))
    if secrets.mask(sent) != sent:
        raise SkillupError(
            "an option of the command holds a credential, which is not sent to workers",
            hint="set the variable at the workers, and name it: ${NAME}",
        )
    return Cluster(
        scheduler=scheduler,
        request=asdict(request),
        files=pack(plan, paths, suites, roots, list(files.values()), secrets),
        parallel=parallel,
    )
