"""Pods as data: questions to spec and status, what a Pod refers to, warnings, whether a container restarts. Pure."""
