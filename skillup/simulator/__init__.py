"""The simulated user: played by a model or by an engine, it writes messages and judges nothing.

casting      who plays the user of a case, and what keeps them from it
prompt       what they are told of their part; moves: the form of their answer
model_user   played by a model; engine_user: played by a CLI agent in a session of its own
"""

from skillup.simulator.factory import SimulatorFactory

__all__ = ["SimulatorFactory"]
