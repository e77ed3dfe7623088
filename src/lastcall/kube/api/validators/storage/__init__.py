"""Volumes, claims and classes of storage."""
