"""The adapter of the scripted agent."""
