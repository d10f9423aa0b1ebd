"""The command line: one thin file per verb, and one boundary where errors become exit codes."""
