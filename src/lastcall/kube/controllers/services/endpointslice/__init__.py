"""EndpointSlices. What they should be: `decide` (pure). `controller` writes them."""
