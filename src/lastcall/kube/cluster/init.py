"""PID 1 of the cluster: sets the namespaces up, starts the roles, reaps everything, ends with front.

It stays single-threaded and does nothing but wait, so that it is there to tell what ended and how: its own children
(control plane, shim, node) and, when the shim dies, the orphans that fall to it.

With `ClusterOptions.restart_roles` a role that died is started again, as a fresh fork of this process: a node finds its
containers at the shim, a control plane its objects in the store (with the memory store there is nothing to go on from,
and its death stays the end of the cluster). A new shim finds nothing alive: first every container of the dead one ends.
"""

# check: observes because it sees wait statuses of the roles
# check: prints because stderr of a role is a file or a pipe that front reads
# check: starts processes because it forks the roles and executes the shim
# check: many attributes _Init because PID 1 has no other object: its children, their deaths and what is due

import json
import logging
import os
import select
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from time import gmtime, strftime
from typing import TYPE_CHECKING, NoReturn

from lastcall.kube.cluster.control.channel import Channel, Died, Failed, Join, Leave, Restarted, SetLink, Started
from lastcall.kube.cluster.health.heartbeat import WorkingOn
from lastcall.kube.cluster.health.orphans import Orphans
from lastcall.kube.cluster.health.restarts import Deaths, RestartBackoff, is_its_own_fault, serves_alone
from lastcall.kube.cluster.health.watchdog import Hang, Watchdog
from lastcall.kube.cluster.layout import LOAD, SWEEPER, NodeLayout
from lastcall.kube.cluster.options import API_ENDPOINT, API_INSIDE, KUBERNETES_SERVICE_IP, KUBERNETES_SERVICE_PORT
from lastcall.kube.cluster.plan import NodePlan, Plan
from lastcall.kube.cluster.root import make_directories, make_root
from lastcall.records import kinds
from lastcall.records.quoted_log import QuotedFormatter
from lastcall.records.ring import RingRecorder
from lastcall.world import linux
from lastcall.world.clock import RealClock, monotonic
from lastcall.world.messages import Fields, Verbs, WrongMessage

if TYPE_CHECKING:
    from lastcall.kube.cluster.nodes.coming import Leaving
    from lastcall.records.definitions.init import ProcessDied, ProcessRestarted
    from lastcall.records.definitions.parts import WhyItDied

_LINES_UNDER_LOAD = 5000
"""Recorded lines of output a second, where a load generator's requests are looked for in what applications print."""
_ORPHANS_SECONDS = 0.005
"""Between two looks at what a dead shim left."""
_END_SECONDS = 3.0
"""How long killed processes may take to end before their control groups are left to front or the next start."""


LATER = "later"
"""What a verb answers whose answer comes when it is done."""

ControlPlane = Callable[[Plan], None]
Node = Callable[[Plan, NodePlan], None]


def run_init(
    plan: Plan, channel: socket.socket, control_plane: ControlPlane, node: Node, load: ControlPlane
) -> NoReturn:
    """Run the child's side of the clone, from the moment the id maps are written. Never returns.

    `control_plane`, `node` and `load` are what the forked roles run.
    """
    front = Channel(channel)
    try:
        # With control groups or files front's death is not init's: there is something to do after it (`_end`).
        linux.set_parent_death_signal(0 if plan.cgroups.exists or plan.scratch is not None else signal.SIGKILL)
        os.setsid()
        linux.set_process_name("lastcall-init")
        plan.cgroups.create()
        os.umask(0o022)
        not_on_disk = make_root(
            plan.options.state_size,
            plan.options.state,
            plan.options.static_pods,
            private_plugins=plan.options.cni_conf_dir != "",
            shared=plan.other.place.directory if plan.other is not None else "",
            scratch=plan.scratch,
            claims_in_memory=plan.claims_in_memory(),
        )
        if not_on_disk and plan.scratch is not None:
            os.write(plan.logs["init"], f"what containers write counts as their memory: {not_on_disk}\n".encode())
            plan.scratch.empty()
        linux.sethostname(plan.options.name)
        linux.bring_up_loopback()
        if plan.other is not None:
            # late: only with a container runtime outside
            from lastcall.kube.cluster.runtime.other import link

            link.join(plan.nodes[0].layout)
        else:
            for each in plan.nodes:
                make_directories(each.layout)
        if plan.nodes[0].layout.has_netns:
            # late: 2.4 ms of the start of `run`
            from lastcall.kube.cluster.nodes.network import make_node_networks

            plan.netns.update(make_node_networks([each.layout for each in plan.nodes], [KUBERNETES_SERVICE_IP]))
        _Init(plan, front, control_plane, node, load).run()
    except BaseException as error:
        if os.environ.get("LASTCALL_DEBUG"):
            traceback.print_exc()
        code = error.errno if isinstance(error, OSError) else None
        front.tell(Failed(message=str(error) or repr(error), errno=code))
    plan.cgroups.remove()
    os._exit(70)


class _Init:
    def __init__(self, plan: Plan, front: Channel, control_plane: ControlPlane, node: Node, load: ControlPlane) -> None:
        self._plan = plan
        self._front = front
        self._verbs = Verbs({SetLink: self._set_link, Join: self._join, Leave: self._leave})
        self._control_plane = control_plane
        self._node = node
        self._load = load
        self._nodes = {each.layout.name: each for each in plan.nodes}
        self._shims = {each.layout.shim: each.layout for each in plan.nodes if plan.other is None}
        self._children: dict[int, str] = {}
        self._clock = RealClock()
        self._recorder = RingRecorder(plan.rings["init"], "init", self._clock)
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._restarts = _restarted_roles(plan)
        self._started_at: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._orphans: dict[str, Orphans] = {}
        self._watchdog = Watchdog(plan.hearts, self._clock)
        self._deaths = {role: Deaths() for role in plan.hearts}
        self._leaving: dict[str, Leaving] = {}

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The terminal's signals are front's business; a pid-namespace init ignores what it does not handle anyway.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        # They outlive the control plane: a client that connects while it is away waits for the next one.
        addresses = [API_INSIDE, API_ENDPOINT, *(each.layout.api_server for each in self._plan.nodes)]
        for address in dict.fromkeys([*addresses, (KUBERNETES_SERVICE_IP, KUBERNETES_SERVICE_PORT)]):
            self._plan.inside_sockets.append(_listen(address))
        for role in (*self._shims, "control-plane", *self._nodes, *((LOAD,) if self._plan.options.load else ())):
            self._start(role)
        self._wait()

    def _start(self, role: str) -> None:
        if role in self._plan.hearts:
            self._plan.hearts[role].reset(self._deaths[role].alone)
        if role in self._shims:
            pid = self._start_shim(self._shims[role])
        elif role in self._nodes:
            node = self._nodes[role]
            pid = self._fork(role, node.layout, lambda: self._node(self._plan, node))
        elif role == LOAD:
            pid = self._fork(role, self._plan.nodes[0].layout, lambda: self._load(self._plan))
        else:
            pid = self._fork(role, None, lambda: self._control_plane(self._plan))
        self._children[pid] = role
        self._watchdog.watch(role, pid)
        again = role in self._started_at
        self._started_at[role] = monotonic(self._clock)
        if again:
            facts: ProcessRestarted = {"role": role, "pid": pid}
            self._recorder.record(kinds.PROCESS_RESTARTED, facts=facts)
        self._front.tell(Restarted(role=role, pid=pid) if again else Started(role=role, pid=pid))

    def _start_shim(self, layout: NodeLayout) -> int:
        """A fresh interpreter of about 12 MB: what forks every container should be small."""
        ring, log = self._plan.rings[layout.shim].fd, self._plan.logs[layout.shim]
        pid = os.fork()
        if pid == 0:
            try:
                _become_role(layout.shim, log)
                self._enter(layout)
                owners = self._plan.owners[1].fileno() if self._plan.owners is not None else -1
                for fd in (ring, self._plan.wake_fd, *((owners,) if owners >= 0 else ())):
                    os.set_inheritable(fd, True)
                kube = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
                program = os.path.join(kube, "cri", "sandbox", "shim", "__main__.py")
                arguments = [
                    sys.executable, "-I", "-S", program,
                    "--socket", layout.shim_socket, "--state", layout.shim_state,
                    "--ring-fd", str(ring), "--wake-fd", str(self._plan.wake_fd),
                    "--owners-fd", str(owners),
                    "--cgroups", json.dumps(self._plan.cgroups_of(layout)),
                    "--capacity", json.dumps(self._nodes[layout.name].enforceable),
                    *(("--lines", str(_LINES_UNDER_LOAD)) if self._plan.options.load else ()),
                ]  # fmt: skip
                with suppress(OSError):
                    linux.execv_read_only(sys.executable, arguments)
                os.execv(sys.executable, arguments)  # noqa: S606 (no shell is the point)
            finally:
                traceback.print_exc()
                os._exit(70)
        return pid

    def _enter(self, layout: NodeLayout) -> None:
        """This process becomes one of the node: its network, and its name for Pods that use the host's."""
        if layout.has_netns:
            linux.setns(self._plan.netns[layout.name], linux.CLONE_NEWNET)
            linux.unshare(linux.CLONE_NEWUTS)
            linux.sethostname(layout.name)

    def _fork(self, role: str, layout: NodeLayout | None, main: Callable[[], None]) -> int:
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                signal.set_wakeup_fd(-1)
                self._front.socket.close()
                _become_role(role, self._plan.logs[role])
                if role in self._plan.hearts:
                    self._plan.hearts[role].take()
                if layout is not None:
                    self._enter(layout)
                for netns in self._plan.netns.values():
                    os.close(netns)  # a node that leaves takes its network with it
                main()
                code = 0
            except BaseException as error:
                traceback.print_exc()
                sys.stderr.write(f"{_in_one_line(error)}\n")  # front shows the last line
                sys.stderr.flush()
            finally:
                os._exit(code)
        return pid

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._front.socket, selectors.EVENT_READ, "front")
            selector.register(self._wake_read, selectors.EVENT_READ, "child")
            self._reap()
            while True:
                for key, _ in selector.select(self._seconds_to_wait()):
                    if key.data == "front":
                        for fields, fds in self._front.read():
                            self._obey(fields, fds)
                        if self._front.closed:
                            self._end()
                    if key.data == "child":
                        os.read(self._wake_read, 4096)
                for role, hang in self._watchdog.look():
                    self._tell_of(role, hang)
                self._reap()
                self._restart()
                self._go_on_leaving()

    def _obey(self, fields: Fields, fds: tuple[int, ...]) -> None:
        """What is asked of one node, and what nobody understands, does not end all."""
        error, call = "", fields.get("call")
        try:
            do, asked = self._verbs.read(fields)
            if do(asked, call, fds) == LATER:
                return
        except WrongMessage as wrong:
            error = str(wrong)
        except Exception as failed:
            error = f"the kernel refuses: {str(failed) or type(failed).__name__}"
        self._front.answer(call, error)

    def _join(self, asked: Join, call: object, fds: tuple[int, ...]) -> None:
        """Start one node more. Raises OSError, ValueError, WrongMessage; nothing of it stays then."""
        # late: most clusters keep their nodes
        from lastcall.kube.cluster.nodes.coming import join, part

        node = join(self._plan, asked, fds)
        layout = node.layout
        self._nodes[layout.name], self._shims[layout.shim] = node, layout
        self._deaths[layout.name] = Deaths()
        for role in (layout.shim, layout.name):
            self._restarts |= {role: RestartBackoff()} if self._plan.options.restart_roles else {}
        try:
            for role in (layout.shim, layout.name):
                self._start(role)
        except OSError:
            if layout.shim not in self._children.values():
                self._forget(layout)
                part(self._plan, node)
            raise

    def _leave(self, asked: Leave, call: object, fds: tuple[int, ...]) -> str:
        """End a node: its processes now, the answer comes when nothing of it is left. Raises WrongMessage."""
        # late: most clusters keep their nodes
        from lastcall.kube.cluster.nodes.coming import Leaving

        node = self._nodes.get(asked.node)
        if node is None:
            return ""
        if not node.layout.has_netns or node.layout.number == 1:
            raise WrongMessage(f"{asked.node} cannot leave: it has what published ports and static Pods need")
        roles = (node.layout.shim, node.layout.name)
        leaving = self._leaving.setdefault(asked.node, Leaving(node))
        leaving.calls.append(call)
        for role in roles:
            self._restarts.pop(role, None)
            self._due.pop(role, None)
        for pid in [pid for pid, role in self._children.items() if role in roles]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return LATER

    def _go_on_leaving(self) -> None:
        for name, leaving in list(self._leaving.items()):
            layout = leaving.node.layout
            busy = {layout.shim, layout.name} & set(self._children.values())
            if busy or layout.shim in self._orphans or not leaving.sweep(self._plan, self._children):
                continue
            self._forget(layout)
            del self._leaving[name]
            for call in leaving.calls:
                self._front.answer(call)

    def _forget(self, layout: NodeLayout) -> None:
        del self._nodes[layout.name], self._shims[layout.shim], self._deaths[layout.name]
        for role in (layout.shim, layout.name):
            self._restarts.pop(role, None)
            self._due.pop(role, None)
            self._started_at.pop(role, None)

    def _set_link(self, asked: SetLink, call: object, fds: tuple[int, ...]) -> None:
        """Cut a node's link, or reconnect it. Raises OSError."""
        # late: 2.4 ms of the start of `run`
        from lastcall.kube.cluster.nodes.network import connect, disconnect

        node = self._nodes.get(asked.node)
        if node is None:
            raise WrongMessage(f"there is no node {asked.node!r}")
        (connect if asked.connected else disconnect)(node.layout)

    def _end(self) -> NoReturn:
        """Front is done, or dead. Leaving ends every process of the PID namespace; control groups need more."""
        if self._plan.cgroups.exists or self._plan.scratch is not None:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            self._plan.cgroups.thaw()
            deadline = monotonic(self._clock) + _END_SECONDS
            while monotonic(self._clock) < deadline and _wait_for_child():
                pass
            self._plan.cgroups.remove()
            if self._plan.scratch is not None:
                self._plan.scratch.empty()
        os._exit(0)

    def _seconds_to_wait(self) -> float | None:
        look = self._watchdog.seconds_to_wait()
        if self._leaving and self._orphans:
            return _ORPHANS_SECONDS
        if not self._due:
            return look
        first = max(0.0, min(self._due.values()) - monotonic(self._clock))
        first = max(first, _ORPHANS_SECONDS) if self._orphans else first
        return first if look is None else min(first, look)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            role = self._children.pop(pid, "orphan")
            if role == SWEEPER:
                continue
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            if role == "orphan":
                for orphans in self._orphans.values():
                    orphans.reaped(pid, code, number)
            facts: ProcessDied = {
                "role": role,
                "pid": pid,
                "exitCode": code,
                "signal": number,
                **self._why(role, code, number),
            }
            if role in self._deaths and role in self._restarts:
                deaths, turn = self._deaths[role], facts.get("workingOn")
                deaths.alone = serves_alone(role, turn, deaths.add(facts, ""))
                if deaths.alone:
                    facts["servesAlone"] = deaths.alone
            if role in self._restarts:
                facts["restartsIn"] = self._died(role)
            self._recorder.record(kinds.PROCESS_DIED, facts=facts)
            self._front.tell(Died.read(facts))
            if role in self._shims and (role in self._restarts or self._shims[role].name in self._leaving):
                self._orphans[role] = Orphans(self._shims[role].shim_journals, self._recorder, self._clock)

    def _why(self, role: str, code: int | None, number: int | None) -> "WhyItDied":
        """What init knows of a role's death: that it hung, and what it was working on when it is its own fault."""
        hang = self._watchdog.died(role)
        if hang is not None:
            return {"hung": hang.facts(), **_working_on(hang.working_on)}
        if role in self._plan.hearts and is_its_own_fault(code, number):
            return _working_on(self._plan.hearts[role].working_on)
        return {}

    def _tell_of(self, role: str, hang: Hang) -> None:
        """In the role's log, whose last words these are."""
        with suppress(OSError):
            stamp = strftime("%Y-%m-%dT%H:%M:%S", gmtime(self._clock.wall_ns() // 10**9))
            os.write(self._plan.logs[role], f"\n{stamp}.000Z ERROR {hang.text()}\n{hang.stack}\n".encode())

    def _died(self, role: str) -> float:
        """Note when it is to be started again; answers in how many seconds."""
        now = monotonic(self._clock)
        delay = self._restarts[role].died(now - self._started_at[role])
        self._due[role] = now + delay
        return delay

    def _restart(self) -> None:
        # Each looks at all that are left, so that every kill is recorded by the one whose it is.
        over = [role for role, orphans in self._orphans.items() if orphans.kill(self._children)]
        for role in over:
            del self._orphans[role]
        now = monotonic(self._clock)
        for role in [role for role, due in self._due.items() if due <= now]:
            if role in self._orphans:
                continue  # every container of the dead one has to be gone first
            del self._due[role]
            self._start(role)


def _working_on(turn: WorkingOn | None) -> "WhyItDied":
    return {"workingOn": {"component": turn.component, "key": turn.key}} if turn is not None else {}


def _wait_for_child() -> bool:
    """Reap one of the killed, or wait a moment; False when there is none left."""
    try:
        if os.waitpid(-1, os.WNOHANG) == (0, 0):
            select.select([], [], [], _ORPHANS_SECONDS / 10)
    except ChildProcessError:
        return False
    return True


def _restarted_roles(plan: Plan) -> dict[str, RestartBackoff]:
    if not plan.options.restart_roles:
        return {}
    roles = [role for each in plan.nodes for role in (each.layout.shim, each.layout.name)]
    roles += ["control-plane"] if plan.options.store != "memory" else []
    return {role: RestartBackoff() for role in roles}


def _listen(address: tuple[str, int]) -> socket.socket:
    """A socket in the cluster's network namespace; the address may come later (the node puts it on `lo`)."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND
    sock.bind(address)
    sock.listen(1024)
    return sock


def _in_one_line(error: BaseException) -> str:
    """What happened, without the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(f"{type(error).__name__}: {error}".split())


def _log_with_time() -> None:
    """What roles log has its time (UTC) before it, as front's own log has."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(QuotedFormatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    assert handler.formatter is not None
    handler.formatter.converter = gmtime
    logging.getLogger().addHandler(handler)


def _become_role(role: str, log_fd: int) -> None:
    """Prepare a child of init: it dies with init, has a name in `ps`, and writes its last words to the log of front."""
    linux.set_parent_death_signal(signal.SIGKILL)
    linux.set_process_name(f"lastcall-{role}"[:15])
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not os.environ.get("LASTCALL_DEBUG"):
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
    _log_with_time()
