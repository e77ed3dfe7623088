"""Byte streams over HTTP connections: what remains of a request after `101 Switching Protocols`."""
