"""The verbs, one thin file each."""
