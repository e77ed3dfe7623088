"""How a node reaches the outside: front dials on the host and hands the connected socket in.

The cluster's network namespace has no route to anywhere. Packets over a socket pair that was made before the clone:
what the node asks has a number (`call`), and the answer has it, too, with an `error`, or with the connected fd
(SCM_RIGHTS), `auth` from the user's own docker config, or `addresses` as the host's resolver answers. Nothing of it is
ever on a disk inside. TLS is the asker's.

The way in is the same pair: `Connect` and the fd of a connection that front accepted on a published port. Nothing is
answered, unless it says `tell`: then `Carried` comes back.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from lastcall.kube.cluster.egress.dial_out import dial_out
from lastcall.kube.cluster.egress.outside import outside_address
from lastcall.kube.cri.sandbox.images.way_out import DialError
from lastcall.world import crash_guard
from lastcall.world.messages import Fields, Message, Verbs, WrongMessage
from lastcall.world.wire import Packets, packets_pair

if TYPE_CHECKING:
    from lastcall.kube.cri.api import AuthConfig

TIMEOUT_SECONDS = 90.0
"""Longer than front takes for a name with several silent addresses."""
_AT_ONCE = 32
_PODS_AT_ONCE = 128
"""Connections of Pods that are being made: their own number, so that they never keep images and names waiting."""
_SEND_SECONDS = 5
_HTTPS = 443


class Dial(Message, verb="dial"):
    """Connect on the host. `tls` chooses the proxy."""

    host: str
    port: int
    tls: bool


class DialOutside(Message, verb="dial_outside"):
    """Connect for a Pod (`outside.py` says to where)."""

    address: str
    port: int


class Resolve(Message, verb="resolve"):
    """`family`: A or AAAA."""

    name: str
    family: str


class Credentials(Message, verb="credentials"):
    """`repository`: `<registry>/<path>`."""

    repository: str


class Addresses(Message):
    addresses: list[str]


class Auth(Message):
    username: str
    password: str
    identity_token: str
    registry_token: str


class Found(Message):
    auth: Auth | None


class Connect(Message, verb="connect"):
    """Carry the connection that comes with this to an address of the cluster."""

    address: str
    port: int
    tell: bool = False


class Carried(Message, verb="carried"):
    """What became of a connection. `port`: its client's. `endpoint` is "" when it is not known, `failed` when it did
    not fail."""

    port: int
    endpoint: str
    failed: str


Tell = Callable[[Carried], None]

OnConnection = Callable[[socket.socket, str, int, Tell | None], None]
"""Called with a connection that front accepted, the address and port that it is for, and, where front wants to hear
what became of it, whom to tell."""


def egress_pair() -> tuple[socket.socket, socket.socket]:
    """Create a pair of sockets: (front's end, the node's end)."""
    return packets_pair()


class EgressServer:
    """Front's end: every request in a thread of its own, for name lookups and helpers block.

    `start` inside asyncio; no thread exists before the first request. `close` at the end, from anywhere, twice is fine.
    """

    def __init__(self, sock: socket.socket, *, pods: bool = False) -> None:
        """`pods`: connections of Pods to addresses outside are made, too."""
        self._packets = Packets(sock)
        self._pods = pods
        self._pod_slots = threading.BoundedSemaphore(_PODS_AT_ONCE)
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._verbs = Verbs(
            {
                Dial: self._dial,
                DialOutside: self._dial_outside,
                Resolve: self._resolve,
                Credentials: self._credentials,
                Carried: self._carried,
            }
        )
        self.on_carried: Tell | None = None
        """Called with what the node reports about connections that were handed over with `tell`."""

    def start(self) -> None:
        """Start to answer."""
        # A node that reads nothing any more must not hold a thread forever.
        seconds = struct.pack("ll", _SEND_SECONDS, 0)
        self._packets.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._packets.socket.fileno(), self._read)

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._packets.socket.fileno())
        self._loop = None
        self._packets.close()

    def hand_over(self, accepted: socket.socket, address: str, port: int, *, tell: bool = False) -> bool:
        """Give the node a connection to carry to an address of the cluster; return False if it takes no more at once.

        A node that is being restarted takes it when it is back.
        """
        connect = Connect(address=address, port=port, **({"tell": True} if tell else {}))
        try:
            self._packets.send(connect.to_wire(), (accepted.fileno(),), at_once=True)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        for fields, fds in self._packets.read():
            for fd in fds:
                os.close(fd)  # no verb takes any
            with crash_guard.Turn("egress", str(fields.get("verb"))):
                self._take(fields)
        if self._packets.closed and self._loop is not None:
            self._loop.remove_reader(self._packets.socket.fileno())

    def _take(self, fields: Fields) -> None:
        call = fields.get("call")
        try:
            do, asked = self._verbs.read(fields)
        except WrongMessage as error:
            self._refuse(call, str(error))
            return
        if type(asked) is Carried:
            do(asked)
            return
        slots = self._pod_slots if type(asked) is DialOutside else self._slots
        if not slots.acquire(blocking=False):
            self._refuse(call, "too many connections are being made at once")
            return
        # Daemons: a name server that does not answer must not keep the command from ending.
        threading.Thread(target=self._serve, args=(call, do, asked, slots), name="egress", daemon=True).start()

    def _refuse(self, call: object, error: str) -> None:
        """At once, on the loop: a node that does not read does not hold it up."""
        with suppress(OSError):
            self._packets.send({"answer": call, "error": error}, at_once=True)

    def _serve(
        self,
        call: object,
        do: Callable[[Message], Message | socket.socket],
        asked: Message,
        slots: threading.BoundedSemaphore,
    ) -> None:
        """In a thread of its own. What `do` makes is the answer; a socket is given away."""
        try:
            made: Message | socket.socket | None = None
            answer: Fields = {"answer": call}
            try:
                made = do(asked)
            except Exception as error:
                answer["error"] = str(error) or type(error).__name__
            with suppress(OSError):
                if isinstance(made, socket.socket):
                    with made:
                        self._packets.send(answer, (made.fileno(),))
                else:
                    self._packets.send({**answer, **(made.to_wire() if made is not None else {})})
        finally:
            slots.release()

    def _carried(self, carried: Carried) -> None:
        if self.on_carried is not None:
            self.on_carried(carried)

    def _dial(self, asked: Dial) -> socket.socket:
        return dial_out(asked.host, _checked(asked.port), tls=asked.tls)

    def _dial_outside(self, asked: DialOutside) -> socket.socket:
        """What is checked is what is dialed: an address, never a name."""
        address = outside_address(asked.address)
        if not self._pods:
            raise ValueError("Pods of this cluster cannot reach the outside (--egress allows it)")
        port = _checked(asked.port)
        # HTTPS may have to take the host's proxy; nothing says that anything else is HTTP.
        return dial_out(address, port, tls=port == _HTTPS, environ=None if port == _HTTPS else {})

    def _resolve(self, asked: Resolve) -> Addresses:
        """No address is not an error; a resolver that does not answer is one (OSError)."""
        wanted = socket.AF_INET6 if asked.family == "AAAA" else socket.AF_INET
        try:
            found = socket.getaddrinfo(asked.name, None, wanted, socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno not in (socket.EAI_NONAME, socket.EAI_NODATA):
                raise
            found = []
        return Addresses(addresses=list(dict.fromkeys(str(address[0]) for *_, address in found)))

    def _credentials(self, asked: Credentials) -> Found:
        # late: 34 ms of the start of `rollout`
        from lastcall.kube.cluster.egress.host_credentials import host_credentials

        found = host_credentials(asked.repository)
        if found is None:
            return Found(auth=None)
        auth = Auth(
            username=found.username,
            password=found.password,
            identity_token=found.identity_token,
            registry_token=found.registry_token,
        )
        return Found(auth=auth)


def _checked(port: int) -> int:
    if not 0 < port < 65536:
        raise ValueError("an address is a host and a port")
    return port


class EgressClient:
    """The node's end. Implements `lastcall.kube.cri.sandbox.images.way_out.WayOut`.

    A node that was started anew finds answers to its predecessor's questions: they are dropped, their fds closed.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._packets = Packets(sock)
        sock.setblocking(False)
        self._boot = secrets.token_hex(8)
        self._number = 0
        self._pending: dict[str, asyncio.Future[tuple[Fields, int]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_connection: OnConnection | None = None
        self._verbs = Verbs({Connect: self._connected})

    def take_connections(self, on_connection: OnConnection) -> None:
        """Call `on_connection` with each connection that front gives it, from now on. Inside asyncio."""
        self._on_connection = on_connection
        self._follow()

    def _follow(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            loop.add_reader(self._packets.socket.fileno(), self._read)
            self._loop = loop
        return loop

    async def dial(self, host: str, port: int, *, tls: bool) -> socket.socket:
        """Connect in the host's network; return a non-blocking socket. Raises DialError."""
        return await self._dial(Dial(host=host, port=port, tls=tls), host, port)

    async def dial_outside(self, address: str, port: int) -> socket.socket:
        """Connect for a Pod: as `dial`, but to an address outside of the cluster only. Raises DialError."""
        return await self._dial(DialOutside(address=address, port=port), address, port)

    async def _dial(self, message: Message, host: str, port: int) -> socket.socket:
        try:
            answer, fd = await self._ask(message)
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
        """Return the addresses (`family` A or AAAA) of a name, as the host resolves it. Raises OSError."""
        try:
            answer, _ = await self._ask(Resolve(name=name, family=family))
        except (TimeoutError, DialError) as error:
            raise OSError(f"the host does not answer: {error}") from None
        if answer.get("error"):
            raise OSError(str(answer["error"]))
        try:
            return Addresses.read(answer).addresses
        except WrongMessage as error:
            raise OSError(f"the host's answer cannot be read: {error}") from None

    async def credentials(self, repository: str) -> AuthConfig | None:
        """Return what the user's docker config has for `registry/path`. Raises RuntimeServiceError."""
        # late: 33 ms of the start of `rollout`
        from lastcall.kube.cri.api import AuthConfig, RuntimeServiceError  # front does without

        try:
            answer, _ = await self._ask(Credentials(repository=repository))
        except (TimeoutError, DialError) as error:
            raise RuntimeServiceError(f"cannot get credentials: {error or 'the host does not answer'}") from None
        if answer.get("error"):
            raise RuntimeServiceError(f"cannot get credentials: {answer['error']}")
        try:
            auth = Found.read(answer).auth
        except WrongMessage as error:
            raise RuntimeServiceError(f"cannot get credentials: {error}") from None
        if auth is None:
            return None
        return AuthConfig(
            username=auth.username,
            password=auth.password,
            identity_token=auth.identity_token,
            registry_token=auth.registry_token,
        )

    def close(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._packets.socket.fileno())
        self._loop = None
        self._packets.close()

    async def _ask(self, message: Message) -> tuple[Fields, int]:
        loop = self._follow()
        self._number += 1
        identity = f"{self._boot}-{self._number}"
        future: asyncio.Future[tuple[Fields, int]] = loop.create_future()
        self._pending[identity] = future
        try:
            self._packets.send({**message.to_wire(), "call": identity})
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
        for fields, fds in self._packets.read():
            if "verb" in fields:
                with crash_guard.Turn("published ports", str(fields["verb"])):
                    self._obey(fields, fds)
                continue
            call = fields.get("answer")
            future = self._pending.get(call) if type(call) is str else None
            if future is None or future.done():
                _close(fds)
                continue
            _close(fds[1:])
            future.set_result((fields, fds[0] if fds else -1))
        if self._packets.closed:
            self._lost()

    def _obey(self, fields: Fields, fds: tuple[int, ...]) -> None:
        try:
            do, asked = self._verbs.read(fields)
        except WrongMessage:
            _close(fds)
            raise
        do(asked, fds)

    def _say(self, message: Message) -> None:
        """Send a message to front; drop what it does not take."""
        with suppress(OSError):
            self._packets.send(message.to_wire(), at_once=True)

    def _connected(self, asked: Connect, fds: tuple[int, ...]) -> None:
        for fd in fds:
            sock = socket.socket(fileno=fd)
            if self._on_connection is None:
                sock.close()
            else:
                self._on_connection(sock, asked.address, asked.port, self._say if asked.tell else None)

    def _lost(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._packets.socket.fileno())
        for future in self._pending.values():
            if not future.done():
                future.set_exception(DialError("the host's end is gone"))


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)


@contextmanager
def local_way_out() -> Iterator[EgressClient]:
    """Return both ends in this process, for a command on the host. Inside asyncio."""
    front, node = egress_pair()
    server, client = EgressServer(front), EgressClient(node)
    server.start()
    try:
        yield client
    finally:
        client.close()
        server.close()
