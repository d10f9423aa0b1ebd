"""`skillup list`: which cases are there?"""

from __future__ import annotations

import json
import sys

from skillup.cli.options import AsJson, CaseGlobs, Item, Paths, SampleSize, Seed, Tags, Trust


def list_cases(
    paths: Paths = None,
    case: CaseGlobs = None,
    tag: Tags = None,
    item: Item = None,
    sample_size: SampleSize = None,
    seed: Seed = 0,
    trust: Trust = False,  # noqa: ARG001 - its callback does it
    as_json: AsJson = False,
) -> int:
    """List suites and their cases without running them."""
    from skillup.app.request import default_paths
    from skillup.load.datasets import Sampling, sampled
    from skillup.load.suites import load_paths
    from skillup.plan import Selection, is_selected
    from skillup.reports.terminal.listing import case_as_dict, print_listing

    loaded = load_paths(default_paths(paths)).or_raise()
    selection = Selection(case_globs=tuple(case or ()), tags=tuple(tag or ()))
    suites = sampled(loaded.suites, Sampling(item, sample_size, seed))
    chosen = [(suite, [c for c in suite.cases if is_selected(c, selection)]) for suite in suites]
    if as_json:
        data = [case_as_dict(suite, item) for suite, cases in chosen for item in cases]
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        print_listing(chosen)
    return 0
