"""Front's part of published ports: listening sockets on the host's loopback.

Each accepted connection is handed, as a descriptor, to the first node's process with the address that its Service or
Pod has at this moment (`carrier.py`), so front carries no byte. What has no such address is reset at once.
"""

import asyncio
import errno
import functools
import socket
from collections.abc import Callable, Sequence
from typing import Any

from lastcall.kube.api.meta import name_of, namespace_of
from lastcall.kube.api.resources import PODS, SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.cluster.errors import PortTaken
from lastcall.kube.cluster.published.port import (
    LOOPBACK,
    PublishedPort,
    Target,
    outside_ports,
    pod_target,
    service_target,
    shown_address,
)
from lastcall.kube.cluster.splice import reset
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.listeners import accept_each
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

HandOver = Callable[[socket.socket, str, int], bool]
"""Gives a connection and its target to a node; False when it cannot take it. The socket stays the caller's to close."""
Log = Callable[[str], None]

_BACKLOG = 1024


@dataclass(slots=True)
class _OutsidePort:
    """A node port or a load balancer's port. `message` says why nobody listens."""

    service: str
    target: Target
    message: str = ""
    task: asyncio.Task[None] | None = None


class PublishedPorts:
    """`listen` when no role is forked any more, `run` until cancelled, `close` at the end.

    `node_ports`: also the node ports and load balancer ports of all Services, as they come and go.
    """

    def __init__(self, wanted: Sequence[PublishedPort], *, node_ports: bool, node_ip: str, world: World) -> None:
        self._wanted = wanted
        self._node_ports = node_ports
        self._node_ip = node_ip
        self._world = world
        self._listening: list[tuple[PublishedPort, socket.socket]] = []
        self._more = asyncio.Event()
        self._outside: dict[int, _OutsidePort] = {}

    def listen(self) -> None:
        """Open the sockets of `wanted`. Raises PortTaken, OSError."""
        for each in self._wanted:
            self.add(each)

    def add(self, wanted: PublishedPort) -> str:
        """Publish one more port from now on; return where it listens (`127.0.0.1:8080`). Raises PortTaken."""
        try:
            sock = _listen(wanted.address, wanted.port)
        except OSError as error:
            why = self._why(error, wanted.address, wanted.port)
            raise PortTaken(f"--publish {wanted.port}:{wanted.target}: {why}") from error
        self._listening.append((wanted, sock))
        self._more.set()
        return shown_address(*sock.getsockname()[:2])

    def _why(self, error: OSError, address: str, port: int) -> str:
        """Say why nobody listens: this cluster itself may have the port."""
        if error.errno == errno.EADDRINUSE:
            held = {sock.getsockname()[:2]: each.target for each, sock in self._listening}
            held |= {
                (LOOPBACK, number): each.service for number, each in self._outside.items() if each.task is not None
            }
            if (target := held.get((address, port))) is not None:
                return f"{shown_address(address, port)} is already published for {target}"
        return _why(error, address, port)

    def close(self) -> None:
        for _, sock in self._listening:
            sock.close()
        self._listening = []

    def facts(self) -> list[dict[str, Any]]:
        """Return what is published: `address`, `target`, and a `message` where nobody listens."""
        found: list[dict[str, Any]] = [
            {"address": shown_address(*sock.getsockname()[:2]), "target": each.target} for each, sock in self._listening
        ]
        for port, outside in self._outside.items():
            entry = {"address": shown_address(LOOPBACK, port), "target": outside.service}
            found.append(entry | ({"message": outside.message} if outside.message else {}))
        return found

    async def run(self, client: Client, hand_over: HandOver, log: Log) -> None:
        """Accept and hand over connections. Nothing is accepted before Services and Pods are known, and nothing is
        watched that no port needs.
        """
        async with Tasks() as tasks:
            targets = _Targets(client, self._world, tasks)
            if self._node_ports:
                following = self._follow_node_ports(await targets.services(), tasks, hand_over, log)
                tasks.spawn(crash_guard.guarded("published ports", "node ports", following), name="node ports")
            served = 0
            while True:
                self._more.clear()
                for each, sock in self._listening[served:]:
                    find = await targets.finder(each)
                    tasks.spawn(self._accept(sock, find, hand_over), name=f"port {each.port}")
                    served += 1
                await self._more.wait()

    async def _follow_node_ports(self, services: Informer, tasks: Tasks, hand_over: HandOver, log: Log) -> None:
        changed = asyncio.Event()
        services.add_handler(lambda _: changed.set(), lambda _old, _new: changed.set(), lambda _: changed.set())
        while True:
            changed.clear()
            self._follow(services, tasks, hand_over, log)
            await changed.wait()

    def _follow(self, services: Informer, tasks: Tasks, hand_over: HandOver, log: Log) -> None:
        """Listen on what the Services have now, and on nothing else."""
        wanted: dict[int, tuple[str, Target]] = {}
        for service in services.items():
            where = f"{namespace_of(service)}/{name_of(service)}"
            with crash_guard.Turn("published ports", where):
                for port, target in outside_ports(service, self._node_ip):
                    wanted.setdefault(port, (f"svc/{where}", target))
        for port in [port for port in self._outside if port not in wanted]:
            task = self._outside.pop(port).task
            if task is not None:
                task.cancel()
        for port, (service_name, target) in wanted.items():
            known = self._outside.get(port)
            if known is not None:
                known.service, known.target = service_name, target
                if known.task is not None:
                    continue
            outside = known or self._outside.setdefault(port, _OutsidePort(service_name, target))
            try:
                sock = _listen(LOOPBACK, port)
            except OSError as error:
                message = self._why(error, LOOPBACK, port)
                if message != outside.message:
                    log(f"{service_name} is not published: {message}")
                outside.message = message
                continue
            outside.message = ""
            target_now = functools.partial(_target_of, outside)
            outside.task = tasks.spawn(self._accept(sock, target_now, hand_over), name=f"node port {port}")

    async def _accept(self, sock: socket.socket, find: Callable[[], Target | None], hand_over: HandOver) -> None:
        def take(accepted: socket.socket) -> None:
            target = None
            with crash_guard.Turn("published ports", ""):
                target = find()
            if target is not None and hand_over(accepted, *target):
                accepted.close()
            else:
                reset(accepted)

        try:
            await accept_each(sock, self._world.clock, take)
        finally:
            sock.close()


class _Targets:
    """Where connections lead at the moment, from informers that start when the first port needs them."""

    def __init__(self, client: Client, world: World, tasks: Tasks) -> None:
        self._client = client
        self._world = world
        self._tasks = tasks
        self._services: Informer | None = None
        self._pods: dict[tuple[str, str], Informer] = {}

    async def services(self) -> Informer:
        """All Services, known."""
        if self._services is None:
            self._services = self._started(Informer(self._client, SERVICES, world=self._world))
        await self._services.synced()
        return self._services

    async def finder(self, wanted: PublishedPort) -> Callable[[], Target | None]:
        """What answers the target of a published port, None where it has none."""
        key, port = (wanted.namespace, wanted.name), wanted.target_port
        if wanted.kind == "svc":
            services = await self.services()

            def of_service() -> Target | None:
                service = services.get(*key)
                return service_target(service, port) if service else None

            return of_service
        if key not in self._pods:
            only = f"metadata.name={wanted.name}"
            self._pods[key] = self._started(
                Informer(self._client, PODS, wanted.namespace, field_selector=only, world=self._world)
            )
        pods = self._pods[key]
        await pods.synced()

        def of_pod() -> Target | None:
            pod = pods.get(*key)
            return pod_target(pod, port) if pod else None

        return of_pod

    def _started(self, informer: Informer) -> Informer:
        self._tasks.spawn(informer.run(), name="published targets")
        return informer


def _target_of(outside: _OutsidePort) -> Target:
    return outside.target


def _listen(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _why(error: OSError, address: str, port: int) -> str:
    shown = shown_address(address, port)
    if error.errno == errno.EADDRINUSE:
        return f"{shown} is in use by another process (ss -ltnp shows which)"
    if error.errno == errno.EACCES:
        return f"this user may not listen on {shown}: ports below net.ipv4.ip_unprivileged_port_start need root"
    return f"cannot listen on {shown}: {error.strerror or error}"
