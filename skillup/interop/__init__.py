"""Other tools' files, made into suites of ours.

One module for each neighbour reads its format into :mod:`drafts <skillup.interop.draft>`; what they
share is how a source is read (:mod:`skillup.interop.node`: every value that is read is accounted
for) and how a suite is written. Nothing is dropped in silence: see :mod:`skillup.interop.report`.
"""
