"""Somebody else's container runtime, reached by CRI v1 over gRPC: the internal CRI, as a client."""
