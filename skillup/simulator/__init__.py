"""The simulated user: played by a model or by an engine, it writes messages and judges nothing."""

from skillup.simulator.factory import SimulatorFactory

__all__ = ["SimulatorFactory"]
