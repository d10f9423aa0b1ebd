"""What a run's trials say together, for people: on the console and in Markdown.

``sheets_of`` makes tables and lines of an analysis, of all that has something to say; ``console``
and ``markdown`` only lay them out.
"""
