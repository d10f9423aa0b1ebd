"""Refusals of a provider hold back everybody who asks it: agents, judges and simulated users."""

from skillup.ratelimit.limiter import RateLimiter, Throttle

__all__ = ["RateLimiter", "Throttle"]
