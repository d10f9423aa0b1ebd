"""Refusals of a provider hold back everybody who asks it: agents, judges and simulated users."""

from skillup.ratelimit.limiter import ANSWERED, REFUSALS, RateLimiter, Throttle

__all__ = ["ANSWERED", "REFUSALS", "RateLimiter", "Throttle"]
