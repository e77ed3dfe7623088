"""Paths that are not of objects (Kubernetes's non-resource URLs): discovery, versions, keys, health."""
