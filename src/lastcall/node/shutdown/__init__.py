"""Graceful node shutdown. Who ends when: `decide` (pure). `manager` acts."""
