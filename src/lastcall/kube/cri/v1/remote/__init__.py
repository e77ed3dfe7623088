"""Reach an existing container runtime by CRI v1 over gRPC: the internal CRI, as a client."""
