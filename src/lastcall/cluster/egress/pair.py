"""The node's way out: front dials on the host and hands the connected socket in.

The cluster's network namespace has no route to anywhere. One SEQPACKET socket pair, made before the clone, carries a
JSON object a message: `{"id": …, "host": …, "port": …, "tls": …}` is answered with `{"id": …}` and the connected fd
(SCM_RIGHTS) or with `{"id": …, "error": …}`; `{"id": …, "credentials": "<registry>/<path>"}` with `{"id": …, "auth":
{…} | null}` from the user's own docker config; `{"id": …, "outside": …, "port": …}` with a connection for a Pod
(`outside.py` says to where); `{"id": …, "resolve": …, "family": "A" | "AAAA"}` with `{"id": …,
"addresses": […]}`, as the host's resolver answers. Nothing of it is ever on a disk inside. TLS is the asker's.

The way in is the same pair: `{"connect": [address, port]}` and the fd of a connection that front accepted on a
published port. Nothing is answered, unless `"tell": true` is with it: then `{"carried": PORT, "endpoint": ADDRESS,
"failed": …}`, the client's port, the endpoint that it leads to ("" when unknown) and, where there is no connection, how
that failed.
"""

import asyncio
import json
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lastcall.cluster.egress.outside import outside_address
from lastcall.cri.sandbox.images.way_out import DialError
from lastcall.world import walls

if TYPE_CHECKING:
    from lastcall.cri.api import AuthConfig

TIMEOUT_SECONDS = 90.0
"""Longer than front takes for a name with several silent addresses."""
_MAX_MESSAGE = 128 * 1024
_AT_ONCE = 32
_PODS_AT_ONCE = 128
"""Connections of Pods that are being made: their own number, so that they never keep images and names waiting."""
_SEND_SECONDS = 5
_HTTPS = 443

Message = dict[str, Any]

Tell = Callable[[Message], None]

OnConnection = Callable[[socket.socket, str, int, Tell | None], None]
"""Called with a connection that front accepted, the address and port that it is for, and, where front wants to hear
what became of it, whom to tell."""


def egress_pair() -> tuple[socket.socket, socket.socket]:
    """(front's end, the node's end)."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class EgressServer:
    """Front's end: every request in a thread of its own, for name lookups and helpers block.

    `start` inside asyncio; no thread exists before the first request. `close` at the end, from anywhere, twice is fine.
    """

    def __init__(self, sock: socket.socket, *, pods: bool = False) -> None:
        """`pods`: connections of Pods to addresses outside are made, too."""
        self._sock = sock
        self._pods = pods
        self._pod_slots = threading.BoundedSemaphore(_PODS_AT_ONCE)
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_carried: Tell | None = None
        """Called with what the node tells of connections that were handed over with `tell`."""

    def start(self) -> None:
        """Answer from now on."""
        # A node that reads nothing any more must not hold a thread for ever.
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._sock.fileno(), self._read)

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
        self._loop = None
        self._sock.close()

    def hand_over(self, accepted: socket.socket, address: str, port: int, *, tell: bool = False) -> bool:
        """Give the node a connection to carry to an address of the cluster. False when it takes no more at once.

        A node that is just started again takes it when it is there.
        """
        data = json.dumps({"connect": [address, port], **({"tell": True} if tell else {})}).encode()
        try:
            # Not socket.send_fds, which ignores its flags before Python 3.12.
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", accepted.fileno()))
            self._sock.sendmsg([data], [rights], socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        while True:
            try:
                data = self._sock.recv(_MAX_MESSAGE, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if not data:
                if self._loop is not None:
                    self._loop.remove_reader(self._sock.fileno())
                return
            with suppress(ValueError):
                request = json.loads(data)
                if isinstance(request, dict) and isinstance(request.get("id"), str):
                    self._take(request)
                elif isinstance(request, dict) and "carried" in request and self.on_carried is not None:
                    self.on_carried(request)

    def _take(self, request: Message) -> None:
        slots = self._pod_slots if "outside" in request else self._slots
        if not slots.acquire(blocking=False):
            self._answer({"id": request["id"], "error": "too many connections are being made at once"})
            return
        # Daemons: a name server that does not answer must not keep the command from ending.
        threading.Thread(target=self._serve, args=(request, slots), name="egress", daemon=True).start()

    def _serve(self, request: Message, slots: threading.BoundedSemaphore) -> None:
        sock: socket.socket | None = None
        try:
            answer: Message = {"id": request["id"]}
            try:
                if "credentials" in request:
                    answer["auth"] = _host_credentials(str(request["credentials"]))
                elif "resolve" in request:
                    answer["addresses"] = _resolve(str(request["resolve"]), str(request.get("family")))
                elif "outside" in request:
                    sock = _dial_outside(request, self._pods)
                else:
                    sock = _dial(request)
            except Exception as error:
                answer["error"] = str(error) or type(error).__name__
            with suppress(OSError):
                self._answer(answer, sock)
        finally:
            if sock is not None:
                sock.close()
            slots.release()

    def _answer(self, answer: Message, sock: socket.socket | None = None) -> None:
        data = json.dumps(answer).encode()
        socket.send_fds(self._sock, [data], [sock.fileno()] if sock is not None else [])


def _dial(request: Message) -> socket.socket:
    from lastcall.cluster.egress.dial_out import dial_out

    host, port = request.get("host"), request.get("port")
    if not isinstance(host, str) or not isinstance(port, int) or not 0 < port < 65536:
        raise ValueError("an address is a host and a port")
    return dial_out(host, port, tls=bool(request.get("tls")))


def _dial_outside(request: Message, allowed: bool) -> socket.socket:
    """For a Pod. What is checked is what is dialed: an address, never a name."""
    from lastcall.cluster.egress.dial_out import dial_out

    address, port = outside_address(str(request["outside"])), request.get("port")
    if not allowed:
        raise ValueError("Pods of this cluster stay inside (--egress lets them out)")
    if not isinstance(port, int) or not 0 < port < 65536:
        raise ValueError("an address is a host and a port")
    # HTTPS may have to take the host's proxy; nothing says that anything else is HTTP.
    return dial_out(address, port, tls=port == _HTTPS, environ=None if port == _HTTPS else {})


def _resolve(name: str, family: str) -> list[str]:
    """No address is no error; a resolver that does not answer is one (OSError)."""
    wanted = socket.AF_INET6 if family == "AAAA" else socket.AF_INET
    try:
        found = socket.getaddrinfo(name, None, wanted, socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            return []
        raise
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _host_credentials(repository: str) -> Message | None:
    from lastcall.cluster.egress.host_credentials import host_credentials

    found = host_credentials(repository)
    if found is None:
        return None
    return {
        "username": found.username,
        "password": found.password,
        "identity_token": found.identity_token,
        "registry_token": found.registry_token,
    }


class EgressClient:
    """The node's end. Implements `lastcall.cri.sandbox.images.way_out.WayOut`.

    A node that was started anew finds answers to its predecessor's questions: they are dropped, their fds closed.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sock.setblocking(False)
        self._boot = secrets.token_hex(8)
        self._number = 0
        self._pending: dict[str, asyncio.Future[tuple[Message, int]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_connection: OnConnection | None = None

    def take_connections(self, on_connection: OnConnection) -> None:
        """Call `on_connection` with each connection that front hands in, from now on. Inside asyncio."""
        self._on_connection = on_connection
        self._follow()

    def _follow(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            loop.add_reader(self._sock.fileno(), self._read)
            self._loop = loop
        return loop

    async def dial(self, host: str, port: int, *, tls: bool) -> socket.socket:
        """A connected, non-blocking socket in the host's network. Raises DialError."""
        return await self._dial({"host": host, "port": port, "tls": tls}, host, port)

    async def dial_outside(self, address: str, port: int) -> socket.socket:
        """The same for a Pod: to an address outside of the cluster only. Raises DialError."""
        return await self._dial({"outside": address, "port": port}, address, port)

    async def _dial(self, request: Message, host: str, port: int) -> socket.socket:
        try:
            answer, fd = await self._ask(request)
        except TimeoutError:
            raise DialError(f"dial tcp {host}:{port}: i/o timeout") from None
        if answer.get("error") or fd < 0:
            if fd >= 0:
                os.close(fd)
            raise DialError(str(answer.get("error") or "the host answered without a connection"))
        sock = socket.socket(fileno=fd)
        sock.setblocking(False)
        return sock

    async def resolve(self, name: str, family: str) -> list[str]:
        """Addresses (`family` A or AAAA) of a name, as the host resolves it. Raises OSError."""
        try:
            answer, _ = await self._ask({"resolve": name, "family": family})
        except (TimeoutError, DialError) as error:
            raise OSError(f"the host does not answer: {error}") from None
        if answer.get("error"):
            raise OSError(str(answer["error"]))
        return [str(address) for address in answer["addresses"]]

    async def credentials(self, repository: str) -> "AuthConfig | None":
        """What the user's docker config has for `registry/path`. Raises RuntimeServiceError."""
        from lastcall.cri.api import AuthConfig, RuntimeServiceError  # front does without

        try:
            answer, _ = await self._ask({"credentials": repository})
        except (TimeoutError, DialError) as error:
            raise RuntimeServiceError(f"cannot get credentials: {error or 'the host does not answer'}") from None
        if answer.get("error"):
            raise RuntimeServiceError(f"cannot get credentials: {answer['error']}")
        found = answer.get("auth")
        return AuthConfig(**found) if found else None

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._sock.fileno())
        self._loop = None
        self._sock.close()

    async def _ask(self, request: Message) -> tuple[Message, int]:
        loop = self._follow()
        self._number += 1
        identity = f"{self._boot}-{self._number}"
        future: asyncio.Future[tuple[Message, int]] = loop.create_future()
        self._pending[identity] = future
        try:
            self._sock.send(json.dumps({"id": identity, **request}).encode())
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await future
        except TimeoutError:
            raise
        except OSError as error:
            raise DialError(f"the host's end is gone: {error.strerror}") from None
        except asyncio.CancelledError:
            # The answer may have come in the moment its asker was cancelled.
            if future.done() and not future.cancelled() and not future.exception() and future.result()[1] >= 0:
                os.close(future.result()[1])
            raise
        finally:
            self._pending.pop(identity, None)

    def _read(self) -> None:
        while True:
            try:
                # Not socket.recv_fds, which ignores its flags before Python 3.12.
                data, ancillary, _, _ = self._sock.recvmsg(
                    _MAX_MESSAGE, socket.CMSG_SPACE(4 * struct.calcsize("i")), socket.MSG_CMSG_CLOEXEC
                )
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data, ancillary = b"", []
            fds = [fd for level, kind, body in ancillary for fd in _fds(level, kind, body)]
            if not data:
                self._lost()
                return
            try:
                answer = json.loads(data)
                if "connect" in answer:
                    with walls.Turn("published ports", str(answer["connect"])):
                        self._connected(answer["connect"], fds, self._say if answer.get("tell") is True else None)
                    continue
                future = self._pending.get(answer["id"])
            except (ValueError, KeyError, TypeError):
                answer, future = {}, None
            if future is None or future.done():
                for fd in fds:
                    os.close(fd)
                continue
            for fd in fds[1:]:
                os.close(fd)
            future.set_result((answer, fds[0] if fds else -1))

    def _say(self, message: Message) -> None:
        """Tell front; what it does not take is not told."""
        with suppress(OSError):
            self._sock.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)

    def _connected(self, target: list[Any], fds: list[int], tell: Tell | None) -> None:
        for fd in fds:
            sock = socket.socket(fileno=fd)
            if self._on_connection is None:
                sock.close()
            else:
                self._on_connection(sock, str(target[0]), int(target[1]), tell)

    def _lost(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._sock.fileno())
        for future in self._pending.values():
            if not future.done():
                future.set_exception(DialError("the host's end is gone"))


def _fds(level: int, kind: int, body: bytes) -> tuple[int, ...]:
    if (level, kind) != (socket.SOL_SOCKET, socket.SCM_RIGHTS):
        return ()
    count = len(body) // struct.calcsize("i")
    return struct.unpack(f"{count}i", body[: count * struct.calcsize("i")])


@contextmanager
def local_way_out() -> Iterator[EgressClient]:
    """Both ends in this process, for a command on the host. Inside asyncio."""
    front, node = egress_pair()
    server, client = EgressServer(front), EgressClient(node)
    server.start()
    try:
        yield client
    finally:
        client.close()
        server.close()
