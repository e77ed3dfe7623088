"""One Pod network over several machines."""
