"""Containers of a Pod: what they are, their environment, hooks and probes, devices."""
