"""What the trials of one run say together: from grades to ``schema.analysis``."""

from skillup.analysis.analyse import Observations, analyse, with_analysis

__all__ = ["Observations", "analyse", "with_analysis"]
