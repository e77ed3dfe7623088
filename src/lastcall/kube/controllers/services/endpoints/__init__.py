"""v1 Endpoints. What they should be: `decide` (pure). `controller` writes them."""
