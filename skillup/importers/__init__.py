"""Other tools' files, made into suites of ours.

One module or package for each neighbour reads its format into drafts (`draft.py`); what they share
is how a source is read (`promptfoo/values.py`: every value that is read is accounted for) and how a
suite is written. Nothing is dropped in silence: see `notes.py`.
"""
