"""The deterministic checks: pure functions of the record, with evidence for what they say."""
