"""What the trials of one run say together: from grades to ``schema.result``."""

from skillup.analysis.analyse import analyse, with_analysis

__all__ = ["analyse", "with_analysis"]
