"""The agent's answers in a question, for the written-down judge.

Questions have texts between lines with a code, and name each on such a line too: see
`skillup/judges/reading/material.py` and `skillup/judges/users/prompt.py`, which write what is read
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCED = re.compile(
    r"^=====\[ (?P<code>\w+) (?:BEGIN MATERIAL|THE CONVERSATION SO FAR) \]=====\n"
    r"(?P<text>.*?)\n?"
    r"^=====\[ (?P=code) END (?:MATERIAL|OF THE CONVERSATION SO FAR) \]=====$",
    re.MULTILINE | re.DOTALL,
)
_ANSWER = re.compile(r" answer(?: \(empty\))?$|^THE ASSISTANT SAID$")
_WHOLE = "Judge the conversation as a whole"


def without_texts(prompt: str) -> str:
    """What is asked, without the texts that it is about."""
    return _FENCED.sub("", prompt)


def latest_answer(prompt: str) -> str:
    """The last answer in it, which is the one in question; empty if there is none."""
    return next(reversed([text for _, text in _answers(prompt)]), "")


def judged_answer(prompt: str) -> str:
    """The latest answer; of a whole conversation, the answers of all its turns."""
    if _WHOLE not in without_texts(prompt):
        return latest_answer(prompt)
    # What stands before the first turn is context.
    return "\n\n".join(text for label, text in _answers(prompt) if label.startswith("turn "))


def _answers(prompt: str) -> Iterator[tuple[str, str]]:
    """Each answer, after its label: `turn 2 · answer`."""
    for fenced in _FENCED.finditer(prompt):
        heading = re.compile(rf"^-----\[ {fenced['code']} (.*) \]-----$", re.MULTILINE)
        pieces = heading.split(fenced["text"])
        for label, text in zip(pieces[1::2], pieces[2::2], strict=True):
            if _ANSWER.search(label):
                yield label, text.strip("\n")
