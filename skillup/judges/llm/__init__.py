"""The checks that a model reads: rubrics, comparisons, answer quality, relevance."""
