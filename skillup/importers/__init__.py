"""Other tools' suites, converted into ours; what no converter has read is listed in a report."""
