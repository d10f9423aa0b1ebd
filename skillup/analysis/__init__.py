"""What the trials of one run say together: from grades to ``schema.analysis``.

``analyse`` is the door, ``with_analysis`` the same for a result. Trials are first boiled down to
what counts (``observation``), so that a run of any size can be analysed while its grades pass by;
each file then answers one question.
"""

from skillup.analysis.analyse import Observations, analyse, with_analysis

__all__ = ["Observations", "analyse", "with_analysis"]
