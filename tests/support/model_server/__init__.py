"""A scripted model server on loopback: for driving the real `claude` and `codex`, and for judges.

It speaks Anthropic Messages, OpenAI Responses and Chat Completions. What it answers is
a function of the request alone, never of how many requests came before, so retries, background
requests, resumed processes and concurrent sessions cannot use up each other's answers.
"""

from tests.support.model_server.model import *  # noqa: F403
from tests.support.model_server.server import ModelServer as ModelServer
