"""How skillup asks models: for its judges, and for the simulated user."""
