"""Node-pressure eviction. When, whom, what is said: `decide` (pure). `manager` acts on what `host_stats` measures."""
