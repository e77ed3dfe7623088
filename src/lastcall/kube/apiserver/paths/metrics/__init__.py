"""What the API server counts, and `/metrics`."""
