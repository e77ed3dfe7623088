"""Front's side of an embedded cluster: makes the process tree, follows it, ends it.

The tree is made synchronously, before any event loop or thread exists; `connect` and what follows run inside asyncio.
Source of the shape: ARCHITECTURE.md, "Process tree".
"""

import asyncio
import gc
import os
import select
import signal
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from lastcall.api.pods import spec as pods
from lastcall.api.resources import NODES
from lastcall.api.scheduling import NOT_READY, taints_of
from lastcall.client.api import ConnectionLost
from lastcall.cluster import init
from lastcall.cluster.control.channel import ChannelReader, ChannelWriter, Message
from lastcall.cluster.control.node import NodeControlClient
from lastcall.cluster.egress.pair import EgressServer
from lastcall.cluster.errors import ClusterStartError, ControlError
from lastcall.cluster.health.restarts import at_work, how, where
from lastcall.cluster.layout import layouts, roles
from lastcall.cluster.options import ClusterOptions
from lastcall.cluster.plan import NodePlan, Plan, make_plan
from lastcall.cluster.staying.credentials import Identity, Issuing
from lastcall.timeline.record import Record, Recorder
from lastcall.timeline.ring import RingReader, RingRecorder
from lastcall.world import linux, walls
from lastcall.world.clock import RealClock, monotonic
from lastcall.world.id_maps import write_id_maps
from lastcall.world.start_code import AFTER_SECONDS, give_back_start_code
from lastcall.world.tasks import unless

if TYPE_CHECKING:
    from lastcall.client.http import HTTPClient
    from lastcall.cluster.load import LoadClient

T = TypeVar("T")

ProcessDied = Callable[[str, int, int | None, int | None], None]
"""Called with role, pid (as the cluster sees it), exit code, signal."""

ProcessRestarted = Callable[[str, int], None]
"""Called with role and pid (as the cluster sees it)."""

NODES_SECONDS = 60.0
"""So long nobody needs to answer when front asks for its nodes, unless its caller has less time."""

_DEATH_IS_KNOWN_SECONDS = 1.0
_ANSWERS_WITHIN_SECONDS, _TRY_AGAIN_SECONDS = 60.0, 0.05
"""Of an API server that was just started: no connection before the first, and between two tries."""

_RECORDS_TOGETHER_SECONDS = 0.015
"""From the first record that is new to its reading: less than an eye sees, and the rings hold more than comes then."""

_NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
)


_COLLECT_AFTER = (20_000, 20, 50)
"""gc.set_threshold of the roles, which make few cycles: a first Pod runs 0.1 s sooner than with Python's own."""


def _control_plane(plan: Plan) -> None:
    """The roles import what only they need, each on its own processor, while front goes on."""
    gc.set_threshold(*_COLLECT_AFTER)
    from lastcall.cluster import control_plane

    gc.freeze()
    control_plane.main(plan)


def _node(plan: Plan, own: NodePlan) -> None:
    gc.set_threshold(*_COLLECT_AFTER)
    from lastcall.cluster import node

    gc.freeze()
    node.main(plan, own)


def _load(plan: Plan) -> None:
    from lastcall.cluster import load

    gc.freeze()
    load.main(plan)


class EmbeddedCluster:
    """One cluster of this process. `start`, then inside asyncio `connect`; `stop` at the end, whatever happened."""

    client: "HTTPClient"

    def __init__(self, options: ClusterOptions, identity: Identity | None = None, api_port: int = 0) -> None:
        """`identity` as in `Issuing`, `api_port` as in `make_plan`."""
        self._options = options
        self._identity = identity
        self._api_port = api_port
        self._plan: Plan | None = None
        self._init_pid = 0
        self._channel: ChannelReader | None = None
        self._readers: list[RingReader] = []
        self._on_record: list[Callable[[Record], None]] = []
        self._on_died: list[ProcessDied] = []
        self._on_restarted: list[ProcessRestarted] = []
        self._is_up = False
        self._dead: dict[str, Message] = {}
        self._failed: str = ""
        self._changed: asyncio.Event | None = None
        self._kubeconfig_fd = -1
        self._egress: list[EgressServer] = []
        self._tell_carried = False
        self._nodes: dict[str, NodeControlClient] = {}
        self._link_answers: asyncio.Queue[Message] = asyncio.Queue()

    # -- synchronous: the tree ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Clone init into its namespaces and let it go. Raises ClusterStartError.

        Must run before the first thread or event loop of this process: the roles are forks of it.
        """
        if threading.active_count() != 1:
            raise RuntimeError("the process tree must be made before any thread exists")
        try:
            issuing = Issuing(self._identity, layouts(self._options.nodes))
            # Meanwhile what front and all of the roles need.
            from lastcall.client import http  # noqa: F401

            plan = self._plan = make_plan(self._options, issuing.result(), self._api_port)
        except OSError as error:
            raise ClusterStartError(f"cannot open what the cluster needs: {error}") from error
        except ValueError as error:
            raise ClusterStartError(f"the cluster's keys cannot be used: {error}") from error
        ours, theirs = socket.socketpair()
        go_read, go_write = os.pipe()
        if self._options.restart_roles or self._options.nodes > 1:
            # What init forks again and again is better imported once.
            from lastcall.cluster import control_plane, node  # noqa: F401
        gc.collect()
        gc.freeze()
        try:
            pid = linux.clone3(_NAMESPACES)
        except OSError as error:
            self._close_plan()
            raise self._explained(f"the kernel refuses the cluster's namespaces: {error}") from error
        if pid == 0:
            os.close(go_write)
            ours.close()
            for each in plan.nodes:
                each.close_front()
            if plan.load is not None:
                plan.load[0].close()
            if os.read(go_read, 1) == b"":
                os._exit(70)
            os.close(go_read)
            init.run_init(plan, theirs, _control_plane, _node, _load)
        self._init_pid = pid
        theirs.close()
        os.close(go_read)
        self._channel = ChannelReader(ours)
        try:
            write_id_maps(pid, os.getuid(), os.getgid())
            os.write(go_write, b"g")
        except OSError as error:
            self.stop()
            raise self._explained(f"the kernel refuses the cluster's user id map: {error}") from error
        finally:
            os.close(go_write)
        plan.api_socket.close()
        for each in plan.nodes:
            each.close_node()
        if plan.load is not None:
            plan.load[1].close()
        ours.setblocking(False)
        self._readers = [RingReader(ring) for ring in plan.rings.values()]

    def _explained(self, message: str) -> ClusterStartError:
        from lastcall.world import needs

        return ClusterStartError(message, needs.first_missing())

    def stop(self) -> None:
        """End the tree and wait until the kernel has ended all of it (bounded). Idempotent; never raises."""
        for server in self._egress:
            server.close()
        for client in self._nodes.values():
            client.close()
        self._egress, self._nodes = [], {}
        if self._plan is not None:
            for each in self._plan.nodes:
                each.close_front()  # again, where it had been begun with
        if self._channel is not None:
            self._channel.socket.close()
            self._channel = None
        if self._init_pid:
            with suppress(OSError):
                pidfd = os.pidfd_open(self._init_pid)
                ended, _, _ = select.select([pidfd], [], [], 5.0)
                if not ended:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)
            with suppress(ChildProcessError):
                os.waitpid(self._init_pid, 0)
            self._init_pid = 0
        if self._plan is not None:
            self._plan.cgroups.remove()  # init does it; here for one that was killed
            self._plan.user_ids.release()
        if self._kubeconfig_fd >= 0:
            os.close(self._kubeconfig_fd)
            self._kubeconfig_fd = -1

    def _close_plan(self) -> None:
        if self._plan is not None:
            self._plan.api_socket.close()
            for each in self._plan.nodes:
                each.close_front()
                each.close_node()
            for sock in self._plan.load or ():
                sock.close()
            self._plan.cgroups.remove()
            self._plan.user_ids.release()

    # -- inside asyncio ----------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Follow the tree and wait until the API server answers. Raises ClusterStartError when a role died instead."""
        assert self._plan is not None
        assert self._channel is not None
        loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        loop.add_reader(self._plan.wake_fd, self._woken)
        loop.add_reader(self._channel.socket, self._read_channel)
        for each in self._plan.nodes:
            self._egress.append(EgressServer(each.egress_front, pods=self._options.egress))
            self._egress[-1].start()
            self._nodes[each.layout.name] = NodeControlClient(each.control_front)
            self._nodes[each.layout.name].start()
        from lastcall.client.http import HTTPClient

        credentials = self._plan.credentials
        context = ssl.create_default_context(cadata=credentials.ca_certificate.decode())
        self.client = HTTPClient(self.server, ssl_context=context, token=credentials.admin_token)
        await self._unless_dead(self._api_server_answers())

    async def _api_server_answers(self) -> None:
        """On a machine that is very busy a control plane that starts may take longer than a connection may."""
        assert self._changed is not None
        deadline = monotonic(RealClock()) + _ANSWERS_WITHIN_SECONDS
        while True:
            try:
                await self.client.list(NODES)
                return
            except ConnectionLost:
                if monotonic(RealClock()) > deadline:
                    raise
            with suppress(TimeoutError):
                async with asyncio.timeout(_TRY_AGAIN_SECONDS):
                    await self._changed.wait()

    @property
    def api_port(self) -> int:
        """The port of the host's loopback on which the API server listens."""
        assert self._plan is not None
        return self._plan.api_port

    @property
    def server(self) -> str:
        """`https://127.0.0.1:<port>`, reachable from the host."""
        assert self._plan is not None
        return f"https://127.0.0.1:{self._plan.api_port}"

    async def wait_node_ready(self) -> None:
        """Return when every node is Ready and takes Pods. Raises ClusterStartError when a role died instead."""
        await self._unless_dead(self._nodes_ready())
        self._is_up = True
        asyncio.get_running_loop().call_later(AFTER_SECONDS, give_back_start_code)

    async def _nodes_ready(self) -> None:
        """Ask again when nobody answers: the control plane has just begun, on a machine that may be busy."""
        clock, waiting = RealClock(), dict.fromkeys(each.name for each in layouts(self._options.nodes))
        deadline = monotonic(clock) + NODES_SECONDS
        while waiting:
            try:
                await self._watch_nodes(waiting)
            except ConnectionLost:
                if monotonic(clock) > deadline:
                    raise
            if waiting:
                await clock.sleep(0.05)

    async def _watch_nodes(self, waiting: dict[str, None]) -> None:
        """Take from `waiting` who is Ready, until none is left or the watch ends."""
        async with self.client.watch(NODES) as events:
            async for event in events:
                condition = pods.get_condition(event.object.get("status") or {}, "Ready")
                if not condition or condition["status"] != "True":
                    continue
                marked = any(taint.get("key") == NOT_READY for taint in taints_of(event.object))
                if not marked or not self._options.controllers:
                    # and a Pod made now is not told first that the node is not ready
                    waiting.pop(event.object["metadata"]["name"], None)
                if not waiting:
                    return

    async def _unless_dead(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or ClusterStartError as soon as a role dies."""
        assert self._changed is not None
        result: list[T] = []

        async def run() -> None:
            result.append(await work)

        lost = ""
        try:
            await unless(run(), self._changed)
        except ConnectionLost as error:
            # A dead control plane answers nothing, a moment before its death is known.
            lost = str(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DEATH_IS_KNOWN_SECONDS):
                    await self._changed.wait()
        if result:
            return result[0]
        if lost and not self._dead:
            raise ClusterStartError(f"the API server cannot be reached: {lost}")
        raise self._death_error()

    def _death_error(self) -> ClusterStartError:
        if self._failed:
            return self._explained(f"the cluster's namespaces cannot be set up: {self._failed}")
        role, message = next(iter(self._dead.items()))
        if hung := self.why_it_hung(role):
            return ClusterStartError(f"{role} {hung}")
        end = f"was killed by signal {message['signal']}" if message["signal"] else f"exited {message['exitCode']}"
        words, work = self.last_words(role, 1), at_work(message.get("workingOn"))
        return ClusterStartError(f"{role} {end} while the cluster started{work}" + (f": {words}" if words else ""))

    def on_record(self, callback: Callable[[Record], None]) -> None:
        """Hand every record of every process to `callback`, in order of arrival (`at_ns` has the true order)."""
        self._on_record.append(callback)

    def on_process_died(self, callback: ProcessDied) -> None:
        """Tell of the death of `control-plane`, `node-1`, `shim-1`, an `orphan` of the shim, or `init`.

        One that init starts again is told of by `on_process_restarted` alone, unless the cluster is still starting.
        """
        self._on_died.append(callback)

    def on_process_restarted(self, callback: ProcessRestarted) -> None:
        """Tell of a role that died and was started again (`ClusterOptions.restart_roles`)."""
        self._on_restarted.append(callback)

    def recorder(self, actor: str) -> Recorder:
        """A recorder for front's own records."""
        assert self._plan is not None
        return RingRecorder(self._plan.rings["front"], actor, RealClock())

    def _woken(self) -> None:
        """Let what follows come together: a Pod's end is twenty records, and whoever reads them takes the processor
        from those who end it.
        """
        assert self._plan is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._plan.wake_fd)
        loop.call_later(_RECORDS_TOGETHER_SECONDS, self._read_rings)

    def _read_rings(self) -> None:
        assert self._plan is not None
        asyncio.get_running_loop().add_reader(self._plan.wake_fd, self._woken)
        with suppress(BlockingIOError):
            os.eventfd_read(self._plan.wake_fd)
        for reader in self._readers:
            for record in reader.read_new():
                for callback in self._on_record:
                    try:
                        callback(record)
                    except Exception as error:
                        walls.caught("records", record.kind, error)

    def _read_channel(self) -> None:
        channel = self._channel
        if channel is None:
            return
        for message in channel.read():
            if message["event"] == "failed":
                self._failed = message["message"]
            elif message["event"] == "died":
                self._died(message)
            elif message["event"] == "link":
                self._link_answers.put_nowait(message)
            elif message["event"] == "restarted":
                for callback in self._on_restarted:
                    callback(message["role"], message["pid"])
        if channel.closed:
            asyncio.get_running_loop().remove_reader(channel.socket)
            self._died({"role": "init", "pid": 1, **self._reap_init()})

    def _reap_init(self) -> Message:
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._init_pid, 0)
            self._init_pid = 0
            return {
                "exitCode": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            }
        return {"exitCode": None, "signal": None}

    def _died(self, message: Message) -> None:
        role = message["role"]
        if role in self._nodes:
            self._nodes[role].failed("the node's process ended meanwhile")
        if self._is_up and "restartsIn" in message:
            return
        if role != "orphan":
            self._dead.setdefault(role, message)
        for callback in self._on_died:
            callback(role, message["pid"], message["exitCode"], message["signal"])
        if self._changed is not None:
            self._changed.set()

    def ask_node(self, node: str, action: str, **arguments: Any) -> AsyncIterator[str]:
        """Ask a node's process (`cluster/control/node.py`); what it says until it is done. Raises ControlError."""
        return self._nodes[node].ask(action, **arguments)

    async def load(self) -> "LoadClient":
        """What sends requests in this cluster (`ClusterOptions.load`). Once, and the caller closes it."""
        assert self._plan is not None
        assert self._plan.load is not None
        from lastcall.cluster.load import LoadClient

        return await LoadClient.over(self._plan.load[0])

    def hand_over(self, accepted: socket.socket, address: str, port: int) -> bool:
        """Give the first node a connection that was accepted on the host; False when it takes none."""
        return bool(self._egress) and self._egress[0].hand_over(accepted, address, port, tell=self._tell_carried)

    def on_carried(self, told: Callable[[dict[str, Any]], None]) -> None:
        """Call `told` with what becomes of each connection handed over from now on (`cluster/egress/pair.py`)."""
        self._tell_carried, self._egress[0].on_carried = True, told

    async def set_link(self, node: str, connected: bool) -> None:
        """Cut the link of a node's network namespace to the control plane's, or mend it. Raises ControlError."""
        if self._options.nodes == 1:
            raise ControlError("the only node has no link of its own: a cluster of several (--nodes 2) has")
        if self._channel is None:
            raise ControlError("the cluster has ended")
        ChannelWriter(self._channel.socket).send({"node": node, "connected": connected})
        answer = await self._link_answers.get()
        if answer["error"]:
            raise ControlError(f"the kernel refuses: {answer['error']}")

    async def drain_records(self, seconds: float = 0.05) -> None:
        """Read what the rings still hold, and what arrives within `seconds`."""
        self._read_rings()
        await RealClock().sleep(seconds)
        self._read_rings()

    @property
    def records_overwritten(self) -> int:
        """How many records were never read, for a ring was full of newer ones: this process was held up too long."""
        return sum(reader.overwritten for reader in self._readers)

    # -- for people and tests ----------------------------------------------------------------------------------------

    def kubeconfig(self) -> str:
        """A kubeconfig with the admin's token, as YAML text."""
        assert self._plan is not None
        from lastcall.client.kubeconfig import render_kubeconfig

        credentials = self._plan.credentials
        return render_kubeconfig(
            self._options.name, self.server, credentials.ca_certificate, token=credentials.admin_token
        )

    def kubeconfig_path(self) -> str:
        """A path for KUBECONFIG that lives as long as this process and is never on disk: `/proc/<pid>/fd/<n>`."""
        if self._kubeconfig_fd < 0:
            self._kubeconfig_fd = os.memfd_create("lastcall-kubeconfig", os.MFD_CLOEXEC)
            os.fchmod(self._kubeconfig_fd, 0o600)
            os.write(self._kubeconfig_fd, self.kubeconfig().encode())
        return f"/proc/{os.getpid()}/fd/{self._kubeconfig_fd}"

    def role_logs(self) -> dict[str, int]:
        """Role → fd of what it printed, for all roles but front."""
        assert self._plan is not None
        return self._plan.logs

    def last_words(self, role: str, lines: int = 20) -> str:
        """The end of what a role printed; "" when it printed nothing."""
        assert self._plan is not None
        fd = self._plan.logs.get(role)
        if fd is None:
            return ""
        size = os.fstat(fd).st_size
        text = os.pread(fd, 65536, max(0, size - 65536)).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def why_it_hung(self, role: str) -> str:
        """For a role that init ended for good because it hung: `hung: …` and where; "" for all others."""
        message = self._dead.get(role, {})
        if "hung" not in message:
            return ""
        return (
            f"{how(message)}{at_work(message.get('workingOn'))}, and was ended. Where it stood:\n{where(message)}\n"
            "fix: this is a fault of lastcall's own, please report it with these lines"
        )

    def host_pids(self) -> dict[str, int]:
        """Role → pid in the host's PID namespace, for the roles that live (from the names in /proc)."""
        found: dict[str, int] = {}
        if self._init_pid:
            found["init"] = self._init_pid
            with suppress(OSError):
                for child in _children(self._init_pid):
                    found[_role_name(child, roles(self._options.nodes, self._options.load))] = child
        return found


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def _role_name(pid: int, names: Iterable[str]) -> str:
    with open(f"/proc/{pid}/comm") as file:
        name = file.read().strip()
    # The kernel keeps 15 characters of a name.
    return next((role for role in names if f"lastcall-{role}"[:15] == name), name)
