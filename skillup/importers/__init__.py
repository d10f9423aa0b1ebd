"""Other tools' suites, converted into ours: one module or package for each tool.

Every value of a source that a converter reads is marked as used (`values.SourceValue`); what is
left unmarked is listed in the report, so that nothing is dropped in silence.
"""
