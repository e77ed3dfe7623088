"""Claims and volumes. What binding does about one: `decide` (pure). `binder` acts, `local_path` makes volumes.

All of it starts, and is imported, with `first_claim`.
"""
