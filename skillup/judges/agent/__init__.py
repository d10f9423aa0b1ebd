"""The judge that is an agent, with transcript, changes and workspace before it."""
