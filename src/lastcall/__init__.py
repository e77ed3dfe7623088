"""lastcall: real Kubernetes Pods on one Linux machine, and the exact story of how each of them ends."""

__version__ = "0.1.0"
