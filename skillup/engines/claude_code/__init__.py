"""The adapter of Claude Code."""
