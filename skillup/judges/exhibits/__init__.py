"""What judges that are programs get to see, made of the record and its stored files alone.

workspace_copy   the workspace as it was after a turn
transcript       the conversation, for programs (JSON) and for readers (Markdown)
changes          what changed in the workspace, and the list of its files
"""
