"""CRI v1 over gRPC, with `lastcall[containerd]`: its messages, and the internal CRI in them."""
