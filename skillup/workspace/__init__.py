"""The trial's directory: prepared, looked at after each turn, compared, copied."""
