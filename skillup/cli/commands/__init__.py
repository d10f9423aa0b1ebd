"""The verbs, one thin function each."""
