"""Patches: `apply` has the three kinds of them, `json_patch` is RFC 6902."""
