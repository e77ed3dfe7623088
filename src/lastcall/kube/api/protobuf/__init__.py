"""Kubernetes's protobuf: `decoding` of requests, `encoding` of answers; field numbers in `protobuf.json`."""
