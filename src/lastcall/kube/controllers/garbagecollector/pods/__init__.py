"""The Pod garbage collector. Which Pods nobody will end: `decide` (pure). `controller` removes them."""
