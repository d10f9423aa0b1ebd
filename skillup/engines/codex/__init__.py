"""The adapter of Codex."""
