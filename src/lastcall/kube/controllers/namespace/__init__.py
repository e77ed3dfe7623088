"""Namespaces that end: `controller` empties them; what their conditions say: `conditions` (pure)."""
