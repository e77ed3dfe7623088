"""CRI v1 over gRPC, with `lastcall[cri]`: its messages, and the internal CRI in them."""
