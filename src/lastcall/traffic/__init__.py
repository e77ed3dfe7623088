"""Load and what became of each request."""
