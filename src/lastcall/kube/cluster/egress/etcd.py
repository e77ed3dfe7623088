"""The control plane's way to an etcd outside: a Unix socket for each member, whose connections front dials on the host.

gRPC connects by itself and takes no socket that is connected already; TLS goes through as it is.
"""

import asyncio
import logging
import os
import socket
from contextlib import suppress
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.splice import splice
from lastcall.kube.cri.sandbox.images.way_out import DialError
from lastcall.kube.store.etcd.options import EtcdOptions
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks

_log = logging.getLogger("lastcall.kube.store")


class EtcdWay:
    """`run` until cancelled; `options` name the sockets, which are in `directory`."""

    def __init__(self, options: EtcdOptions, way: socket.socket, directory: str) -> None:
        self._servers = options.servers
        self._client = EgressClient(way)
        self._listening: list[socket.socket] = []
        paths = []
        for number in range(len(options.servers)):
            path = os.path.join(directory, f"etcd-{number}.sock")
            with suppress(FileNotFoundError):
                os.unlink(path)
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.bind(path)
            os.chmod(path, 0o600)
            sock.listen(64)
            sock.setblocking(False)
            self._listening.append(sock)
            paths.append(f"unix:{path}")
        self.options = replace(options, targets=tuple(paths))

    async def run(self) -> None:
        async with Tasks() as tasks:
            for server, sock in zip(self._servers, self._listening, strict=True):
                tasks.spawn(self._accept(tasks, server, sock), name=f"way to {server}")

    async def _accept(self, tasks: Tasks, server: str, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            accepted, _ = await loop.sock_accept(sock)
            carry = partial(self._carry, server, accepted)
            tasks.spawn(crash_guard.guarded("way to etcd", server, carry()), name=f"connection to {server}")

    async def _carry(self, server: str, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        parts = urlsplit(server)
        try:
            # Without the host's proxy: etcd is one's own, and a proxy for HTTPS would not know it.
            dialed = await self._client.dial(parts.hostname or "", parts.port or 0, tls=False)
        except DialError as error:
            _log.warning("etcd %s: %s", server, error)
            accepted.close()
            return
        except BaseException:
            accepted.close()
            raise
        await splice(accepted, dialed)
