"""Ports for servers that cannot be given an open socket: real etcd, kube-apiserver, `lastcall up --publish`."""

import contextlib
import random
import socket

_reserved: list[socket.socket] = []
"""They stay open as long as this process lives."""


def reserve_port() -> int:
    """Return a TCP port of 127.0.0.1 that is free, and that no other test gets as long as this process lives.

    It is below the ports that the kernel gives to clients and to a bind of port 0 (`ip_local_port_range`, from 32768),
    and below node ports (from 30000). An abstract Unix socket with the port's number reserves it among tests.
    """
    while True:
        port = random.randrange(10_000, 30_000)
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError):
            claim.bind(f"\0lastcall-tests-port-{port}")
            with socket.create_server(("127.0.0.1", port)):
                _reserved.append(claim)
                return port
        claim.close()
