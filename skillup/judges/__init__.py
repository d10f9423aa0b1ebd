"""From a record to a grade. Judges see the record and its stored files, and nothing else."""

from skillup.judges.grade import grade, grade_record

__all__ = ["grade", "grade_record"]
