"""Other tools' suites, converted into ours: one module or package for each tool.

Every value that a converter reads is marked as used (`source.SourceValue`); what is left unmarked
is listed in the report, so that nothing is dropped in silence.
"""
