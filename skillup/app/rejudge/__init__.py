"""`skillup judge`: records graded again, without the agent."""
