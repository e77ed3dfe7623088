"""Probes: readiness, liveness and startup."""
