"""report.html and the page of `skillup view`: its data, and how it is put together."""
