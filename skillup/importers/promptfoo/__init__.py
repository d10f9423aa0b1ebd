"""promptfoo's and AgentV's suites: one family of file formats."""
