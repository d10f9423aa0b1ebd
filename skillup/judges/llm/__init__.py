"""The checks that a model reads: rubrics, comparisons, answer quality, relevance."""

from skillup.judges.llm.dispatch import read_checks

__all__ = ["read_checks"]
