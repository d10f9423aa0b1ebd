"""Between agents and their models: keys stay outside, what passes is metered."""
