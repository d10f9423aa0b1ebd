"""The agents' own session files: found, read, and made into cases."""
