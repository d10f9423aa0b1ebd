"""Agents as judges: an engine of ours looks at a copy of the workspace and answers in one form.

criteria    what is asked, and the JSON Schema of the answer
materials   the files it is shown; question: what it is told
room        where it works: a read-only copy, materials and skills; and whether that stayed so
asking      the engine asked, once more if the answer has not the form; answer: the form, strictly
opinion     one answer or several become a result
"""

from skillup.judges.agent.judge import judge_by_agent, problem_of_agent

__all__ = ["judge_by_agent", "problem_of_agent"]
