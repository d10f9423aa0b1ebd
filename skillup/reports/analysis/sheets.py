"""All that an analysis has to say, in the order in which it is shown."""

from __future__ import annotations

from skillup.reports.analysis.matrix import matrix
from skillup.reports.analysis.naming import Names
from skillup.reports.analysis.reliability import trials
from skillup.reports.analysis.sheet import Sheet
from skillup.reports.analysis.triggering import triggering
from skillup.reports.analysis.uplift import uplift
from skillup.schema.analysis import Analysis


def sheets_of(analysis: Analysis) -> list[Sheet]:
    """What several trials, a baseline, triggering checks or several engines came to; else none."""
    names = Names(analysis.cases)
    level = f"{100 * analysis.confidence:g} %"
    found = [
        *trials(analysis.cases, names, level),
        *uplift(analysis.uplift, names, level),
        *triggering(analysis.triggering, names),
        *matrix(analysis, names),
    ]
    return [sheet for sheet in found if sheet.rows or sheet.lines]
