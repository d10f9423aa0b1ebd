"""`skillup bisect`: which commit of a skill, or version of a CLI, broke a case."""
