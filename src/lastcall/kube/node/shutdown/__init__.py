"""Graceful node shutdown. The order of ends: `decide` (pure). `manager` acts."""
