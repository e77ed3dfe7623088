"""Subresources that are more than a partial update: `eviction`, `scale`, and `actions` (binding, log, token)."""
