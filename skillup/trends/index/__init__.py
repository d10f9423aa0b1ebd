"""The index of past runs: an SQLite file beside them, or a database that several machines share.

It holds nothing that is not in the run directories; `skillup trends --rebuild` makes it from them.
"""
