"""report.html and the page of `skillup view`: its data, and how it is put together.

The form of the data is in `docs/reports.md`.
"""
