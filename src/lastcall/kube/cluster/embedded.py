"""Front's side of an embedded cluster: starts the process tree, follows it, ends it.

`start` is synchronous and answers the cluster that runs; what follows happens inside asyncio, `connect` first.
Source of the shape: docs/architecture/processes.md, "The picture".
"""

# check: many attributes Running because it is the parent of all processes: what each said, and who waits for it

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cluster.control.channel import Died, Failed, Join, Leave, Restarted, SetLink, Started
from lastcall.kube.cluster.control.node import NodeControlClient
from lastcall.kube.cluster.egress.pair import EgressServer
from lastcall.kube.cluster.errors import ClusterStartError, ClusterUsageError, ControlError
from lastcall.kube.cluster.health.nodes_ready import ANSWERS_SECONDS, api_answers, nodes_ready
from lastcall.kube.cluster.health.restarts import at_work, how, where
from lastcall.kube.cluster.layout import joining_layout, roles
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.plan import NodePlan
from lastcall.kube.cluster.scratch.owners import OwnersServer
from lastcall.kube.cluster.staying.credentials import Identity
from lastcall.kube.cluster.tree import Tree, explained, grow
from lastcall.kube.cluster.user_ids import UserIDBlocks, claim_blocks
from lastcall.records.record import Record, Recorder
from lastcall.records.ring import Ring, RingReader, RingRecorder
from lastcall.world import crash_guard
from lastcall.world.clock import RealClock
from lastcall.world.messages import Message, Verbs
from lastcall.world.start_code import AFTER_SECONDS, give_back_start_code
from lastcall.world.tasks import unless

if TYPE_CHECKING:
    from lastcall.kube.cluster.egress.pair import Carried
    from lastcall.records.definitions.init import ProcessDied as ProcessDiedFacts

T = TypeVar("T")

ProcessDied = Callable[[str, int, int | None, int | None], None]
"""Called with role, pid (as the cluster sees it), exit code, signal."""

ProcessRestarted = Callable[[str, int], None]
"""Called with role and pid (as the cluster sees it)."""

_DEATH_IS_KNOWN_SECONDS = 1.0
_LINK_SECONDS = 30.0
"""How long init may take to cut a link, or to reconnect it."""
_NODE_SECONDS = 120.0
"""How long init may take to start a node's processes, or to end them and all that is theirs."""

_RECORDS_TOGETHER_SECONDS = 0.015
"""From the first record that is new to its reading: less than an eye sees, and the rings hold more than comes then."""


def start(options: ClusterOptions, identity: Identity | None = None, api_port: int = 0) -> "Running":
    """Return the process tree of a cluster. `identity` as in `Issuing`, `api_port` as in `make_plan`.

    Raises ClusterStartError and ClusterUsageError, with nothing left behind. Must run before the first thread or event
    loop of this process: the roles are forks of it.
    """
    return Running(grow(options, identity, api_port))


class Running:
    """A cluster of this process whose tree runs. Inside asyncio `connect` comes first; `stop` at the end, whatever
    happened, and outside of asyncio as well."""

    def __init__(self, tree: Tree) -> None:
        # late: meanwhile the roles start on another processor
        from lastcall.kube.client.http import HTTPClient

        self._tree, self._plan, self._options = tree, tree.plan, tree.options
        self._clock = RealClock()
        self._readers = {role: RingReader(ring) for role, ring in self._plan.rings.items()}
        self._overwritten = 0
        self._egress = {each.layout.name: self._egress_server(each) for each in self._plan.nodes}
        if self._plan.store_way is not None:
            self._egress[""] = EgressServer(self._plan.store_way[0])
        self._owners = OwnersServer(self._plan.owners[0]) if self._plan.owners is not None else None
        self._nodes = {each.layout.name: NodeControlClient(each.control_front) for each in self._plan.nodes}
        credentials = self._plan.credentials
        context = ssl.create_default_context(cadata=credentials.ca_certificate.decode())
        self.client = HTTPClient(self.server, ssl_context=context, token=credentials.admin_token)
        self._on_record: list[Callable[[Record], None]] = []
        self._on_died: list[ProcessDied] = []
        self._on_restarted: list[ProcessRestarted] = []
        self._changed = asyncio.Event()
        """A role died, or the namespaces cannot be set up."""
        self._is_up = False
        self._dead: dict[str, Died] = {}
        self._failed = ""
        self._kubeconfig_fd = -1
        self._tell_carried = False
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._last_asked = 0
        self._pids: dict[str, int] = {}
        """Role → pid as the cluster sees it."""
        self._from_init = Verbs(
            {Started: self._started, Restarted: self._restarted, Died: self._died, Failed: self._set_up_failed}
        )

    def stop(self) -> None:
        """Stop the tree and wait until the kernel has ended all of it (bounded). Idempotent; never raises."""
        for server in self._egress.values():
            server.close()
        if self._owners is not None:
            self._owners.close()
        for client in self._nodes.values():
            client.close()
        self._tree.end()
        if self._kubeconfig_fd >= 0:
            os.close(self._kubeconfig_fd)
            self._kubeconfig_fd = -1

    def ends_at_logout(self) -> str:
        """Return why it ends when its user logs out; "" if it does not."""
        return self._plan.cgroups.ends_at_logout()

    @property
    def note(self) -> str:
        """Return what the user should know of the requested cluster, in one line; "" for nothing."""
        return self._tree.note

    async def connect(self, seconds: float = ANSWERS_SECONDS) -> None:
        """Follow the tree and wait until the API server answers. Raises ClusterStartError when a role died instead, or
        no answer comes within `seconds`."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._plan.wake_fd, self._woken)
        loop.add_reader(self._tree.channel.socket, self._read_channel)
        for server in self._egress.values():
            server.start()
        if self._owners is not None:
            self._owners.start()
        for node in self._nodes.values():
            node.start()
        await self._unless_dead(api_answers(self.client, self._clock, seconds))

    @property
    def api_port(self) -> int:
        """Return the port of the host's loopback on which the API server listens."""
        return self._plan.api_port

    @property
    def server(self) -> str:
        """Return `https://127.0.0.1:<port>`, reachable from the host."""
        return f"https://127.0.0.1:{self._plan.api_port}"

    async def wait_node_ready(self, seconds: float = ANSWERS_SECONDS) -> None:
        """Wait until every node is Ready and takes Pods. Raises ClusterStartError when a role died instead, or the API
        server does not answer for `seconds`.
        """
        await self._unless_dead(self._ready(self.nodes, seconds))
        self._is_up = True
        asyncio.get_running_loop().call_later(AFTER_SECONDS, give_back_start_code)

    async def _ready(self, names: Sequence[str], seconds: float = ANSWERS_SECONDS) -> None:
        await nodes_ready(self.client, names, self._clock, seconds, controllers=self._options.controllers)

    async def _unless_dead(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, or ClusterStartError as soon as a role dies."""
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
            return explained(f"the cluster's namespaces cannot be set up: {self._failed}")
        role, death = next(iter(self._dead.items()))
        if hung := self.why_it_hung(role):
            return ClusterStartError(f"{role} {hung}")
        end = f"was killed by signal {death.signal}" if death.signal else f"exited {death.exit_code}"
        words, work = self.last_words(role, 1), at_work(death.working_on)
        return ClusterStartError(f"{role} {end} while the cluster started{work}" + (f": {words}" if words else ""))

    def on_record(self, callback: Callable[[Record], None]) -> None:
        """Hand every record of every process to `callback`, in order of arrival (`at_ns` has the true order)."""
        self._on_record.append(callback)

    def on_process_died(self, callback: ProcessDied) -> None:
        """Report the death of `control-plane`, `node-1`, `shim-1`, an `orphan` of the shim, or `init`.

        `on_process_restarted` alone reports one that init starts again, unless the cluster is still starting.
        """
        self._on_died.append(callback)

    def on_process_restarted(self, callback: ProcessRestarted) -> None:
        """Report a role that died and was started again (`ClusterOptions.restart_roles`)."""
        self._on_restarted.append(callback)

    def recorder(self, actor: str) -> Recorder:
        """Return a recorder for front's own records."""
        return RingRecorder(self._plan.rings["front"], actor, self._clock)

    def _woken(self) -> None:
        """Let what follows come together: a Pod's end is twenty records, and their reader takes the processor
        from those who end it.
        """
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._plan.wake_fd)
        loop.call_later(_RECORDS_TOGETHER_SECONDS, self._read_rings)

    def _read_rings(self) -> None:
        asyncio.get_running_loop().add_reader(self._plan.wake_fd, self._woken)
        with suppress(BlockingIOError):
            os.eventfd_read(self._plan.wake_fd)
        for reader in self._readers.values():
            self._read_ring(reader)

    def _read_ring(self, reader: RingReader) -> None:
        for record in reader.read_new():
            for callback in self._on_record:
                try:
                    callback(record)
                except Exception as error:
                    crash_guard.caught("records", record.kind, error)

    def _read_channel(self) -> None:
        channel = self._tree.channel
        for fields, fds in channel.read():
            for fd in fds:
                os.close(fd)
            if "answer" in fields:
                number = fields["answer"]
                asked = self._asked.get(number) if type(number) is int else None
                if asked is not None and not asked.done():
                    asked.set_result(str(fields.get("error") or ""))
                continue
            with crash_guard.Turn("init", str(fields.get("verb"))):
                do, message = self._from_init.read(fields)
                do(message)
        if channel.closed:
            asyncio.get_running_loop().remove_reader(channel.socket)
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_result("the cluster has ended")
            self._died(Died.read({"role": "init", "pid": 1, **self._tree.reap_init()}))

    def _set_up_failed(self, failed: Failed) -> None:
        self._failed = failed.message

    def _started(self, message: Started) -> None:
        self._pids[message.role] = message.pid

    def _restarted(self, message: Restarted) -> None:
        self._pids[message.role] = message.pid
        for callback in self._on_restarted:
            callback(message.role, message.pid)

    def _died(self, message: Died) -> None:
        role = message.role
        if role in self._nodes:
            self._nodes[role].failed("the node's process ended meanwhile")
        if self._is_up and message.restarts_in is not None:
            return
        if role != "orphan":
            self._dead.setdefault(role, message)
        for callback in self._on_died:
            callback(role, message.pid, message.exit_code, message.signal)
        self._changed.set()

    def ask_node(self, node: str, message: Message) -> AsyncIterator[str]:
        """Ask a node's process (`kube/cluster/control/node.py`); yield lines until it is done. Raises ControlError."""
        return self._nodes[node].ask(message)

    async def load(self) -> Any:
        """Return the client of `ClusterOptions.load`. Once, and the caller closes it."""
        assert self._plan.load is not None
        assert self._plan.options.load is not None
        return await self._plan.options.load.client(self._plan.load[0])

    def hand_over(self, accepted: socket.socket, address: str, port: int) -> bool:
        """Give the first node a connection that was accepted on the host; return False if it takes none."""
        return self._egress[self.nodes[0]].hand_over(accepted, address, port, tell=self._tell_carried)

    def on_carried(self, callback: "Callable[[Carried], None]") -> None:
        """Call `callback` with the outcome of each connection handed over later (`kube/cluster/egress/pair.py`)."""
        self._tell_carried, self._egress[self.nodes[0]].on_carried = True, callback

    async def set_link(self, node: str, connected: bool) -> None:
        """Cut the link of a node's network namespace to the control plane's, or reconnect it. Raises ControlError."""
        if not next(each for each in self._plan.nodes if each.layout.name == node).layout.has_netns:
            raise ControlError(f"{node} shares its network with the control plane: start the cluster with --nodes 2")
        await self._ask_init(SetLink(node=node, connected=connected), _LINK_SECONDS)

    async def _ask_init(self, message: Message, seconds: float, fds: tuple[int, ...] = ()) -> None:
        """Return when init has done it. Raises ControlError."""
        self._last_asked = number = self._last_asked + 1
        asked = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._tree.channel.ask(number, message, fds)
            async with asyncio.timeout(seconds):
                error = await asked
        except TimeoutError:
            raise ControlError("the cluster does not answer: it is stopping, or it hangs") from None
        except OSError as gone:
            raise ControlError("the cluster has ended") from gone
        finally:
            del self._asked[number]
        if error:
            raise ControlError(error)

    # -- nodes that come and go ----------------------------------------------------------------------------------------

    @property
    def nodes(self) -> list[str]:
        """Return the names of the present nodes."""
        return [each.layout.name for each in self._plan.nodes]

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the present processes."""
        return roles((each.layout for each in self._plan.nodes), self._options.load is not None)

    def check_size(self, node: str, capacity: Mapping[str, str]) -> str:
        """Return a note on a size that is declared only, "" for none. Raises ControlError for one that cannot be."""
        if not capacity:
            return ""
        # late: few nodes have a size
        from lastcall.kube.cluster.machine_size import check_node_sizes

        try:
            return check_node_sizes(self._plan, NodeCapacity(nodes={node: capacity}), [node])
        except ClusterUsageError as error:
            raise ControlError(str(error)) from error

    async def add_node(self, number: int, capacity: Mapping[str, str]) -> None:
        """Start the processes of the node `number`. Raises ControlError and OSError, with nothing left of it."""
        if self._plan.other is not None:
            raise ControlError("a cluster on another container runtime has one node: each node would need a runtime")
        layout = joining_layout(number)
        made = [Ring.create(f"lastcall-{role}", self._plan.wake_fd) for role in (layout.shim, layout.name)]
        logs = [os.memfd_create(f"lastcall-log-{role}", os.MFD_CLOEXEC) for role in (layout.shim, layout.name)]
        ids = claim_blocks(1, self._options.max_pods)
        node = NodePlan.make(layout, capacity, ids)
        for role, ring, log in zip((layout.shim, layout.name), made, logs, strict=True):
            self._plan.rings[role], self._plan.logs[role] = ring, log
            self._readers[role] = RingReader(ring)
        self._egress[layout.name] = self._egress_server(node)
        self._nodes[layout.name] = NodeControlClient(node.control_front)
        self._plan.nodes.append(node)
        self._plan.nodes.sort(key=lambda each: each.layout.number)
        self._egress[layout.name].start()
        self._nodes[layout.name].start()
        fds = (made[0].fd, logs[0], made[1].fd, logs[1], node.egress_node.fileno(), node.control_node.fileno())
        asked = Join(number=number, capacity=dict(capacity), first_id=ids.first, id_ranges=ids.pods)
        try:
            await self._ask_init(asked, _NODE_SECONDS, fds)
        except ControlError:
            self._forget(node)
            raise
        finally:
            node.close_node()

    async def wait_ready(self, node: str) -> None:
        """Wait until a node that was added is Ready and takes Pods."""
        await self._ready([node])

    async def remove_node(self, node: str) -> None:
        """Remove a node: end its processes and delete all that is theirs. Idempotent. Raises ControlError."""
        await self._ask_init(Leave(node=node), _NODE_SECONDS)
        for each in [each for each in self._plan.nodes if each.layout.name == node]:
            self._forget(each)

    def _forget(self, node: NodePlan) -> None:
        """Let go of a node whose processes have ended, or never began."""
        layout = node.layout
        self._plan.nodes.remove(node)
        self._nodes.pop(layout.name).close()
        self._egress.pop(layout.name).close()
        for role in (layout.shim, layout.name):
            reader = self._readers.pop(role)
            self._read_ring(reader)
            self._overwritten += reader.overwritten
            ring = self._plan.rings.pop(role)
            ring.close()
            for fd in (ring.fd, self._plan.logs.pop(role)):
                os.close(fd)
            self._pids.pop(role, None)
        (node.ids or UserIDBlocks()).release()

    def _egress_server(self, node: NodePlan) -> EgressServer:
        return EgressServer(node.egress_front, pods=self._options.egress)

    async def drain_records(self, seconds: float = 0.05) -> None:
        """Read what the rings still hold, and what arrives within `seconds`."""
        self._read_rings()
        await self._clock.sleep(seconds)
        self._read_rings()

    @property
    def records_overwritten(self) -> int:
        """Return how many records were never read because a ring was full of newer ones: this process was held up too
        long."""
        return self._overwritten + sum(reader.overwritten for reader in self._readers.values())

    # -- for people and tests ----------------------------------------------------------------------------------------

    def kubeconfig(self) -> str:
        """Return a kubeconfig with the admin's token, as YAML text."""
        # late: 1.7 ms of the start of `rollout`
        from lastcall.kube.client.kubeconfig import render_kubeconfig

        credentials = self._plan.credentials
        return render_kubeconfig(
            self._options.name, self.server, credentials.ca_certificate, token=credentials.admin_token
        )

    def kubeconfig_path(self) -> str:
        """Return a path for KUBECONFIG that lives as long as this process and is never on disk:
        `/proc/<pid>/fd/<n>`."""
        if self._kubeconfig_fd < 0:
            self._kubeconfig_fd = os.memfd_create("lastcall-kubeconfig", os.MFD_CLOEXEC)
            os.fchmod(self._kubeconfig_fd, 0o600)
            os.write(self._kubeconfig_fd, self.kubeconfig().encode())
        return f"/proc/{os.getpid()}/fd/{self._kubeconfig_fd}"

    def role_logs(self) -> dict[str, int]:
        """Return role → fd of what it printed, for all roles but front."""
        return self._plan.logs

    def last_words(self, role: str, lines: int = 20) -> str:
        """Return the end of what a role printed; "" when it printed nothing."""
        fd = self._plan.logs.get(role)
        if fd is None:
            return ""
        size = os.fstat(fd).st_size
        text = os.pread(fd, 65536, max(0, size - 65536)).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def why_it_hung(self, role: str) -> str:
        """Return `hung: …` and where for a role that init ended for good because it hung, "" for all others."""
        death = self._dead.get(role)
        if death is None or death.hung is None:
            return ""
        message = cast("ProcessDiedFacts", death.to_wire())
        return (
            f"{how(message)}{at_work(death.working_on)}, and was ended. Where it stood:\n{where(message)}\n"
            "fix: this is a bug of lastcall; please report it with these lines"
        )

    def host_pids(self) -> dict[str, int]:
        """Return role → pid in the host's PID namespace, for the roles that live."""
        return self._tree.host_pids({pid: role for role, pid in self._pids.items()})
