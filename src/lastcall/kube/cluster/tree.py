"""The processes of an embedded cluster: init is cloned into its namespaces and forks the roles; all of it is ended.

Synchronous: the tree is made before any event loop or thread exists, because the roles are forks of this process.
Source of the shape: docs/architecture/processes.md, "The picture".
"""

import json
import logging
import os
import select
import signal
import socket
import threading
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from typing import NoReturn

from lastcall.kube.cluster import init
from lastcall.kube.cluster.control.channel import Channel
from lastcall.kube.cluster.errors import ClusterStartError, ClusterUsageError
from lastcall.kube.cluster.layout import LOAD
from lastcall.kube.cluster.node_capacity import NodeCapacity
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.plan import NodePlan, Plan, make_plan
from lastcall.kube.cluster.staying.credentials import Identity, Issuing
from lastcall.world import linux
from lastcall.world.garbage import collect_seldom, frozen_imports
from lastcall.world.id_maps import write_id_maps
from lastcall.world.messages import Fields
from lastcall.world.wire import packets_pair

_IN_MEMORY = "what containers write counts as their memory, because no disk can hold it ({why}); see lastcall doctor"

_log = logging.getLogger("lastcall.kube.cluster")
_ENDS_WITHIN_SECONDS = 5.0
"""Init, when front lets go of it; it is killed then."""


def grow(options: ClusterOptions, identity: Identity | None = None, api_port: int = 0) -> "Tree":
    """Clone init into its namespaces and let it go. `identity` as in `Issuing`, `api_port` as in `make_plan`.

    Raises ClusterStartError and ClusterUsageError, with nothing left behind. Must run before the first thread or event
    loop of this process.
    """
    if threading.active_count() != 1:
        raise RuntimeError("the process tree must be made before any thread exists")
    with frozen_imports():
        plan = _planned(options, identity, api_port)
        if options.restart_roles or options.nodes > 1:
            # What init forks again and again is better imported once.
            # late: 471 ms of the start of `run`
            from lastcall.kube.cluster import control_plane, node  # noqa: F401
    ours, theirs = packets_pair()
    go_read, go_write = os.pipe()
    try:
        pid = linux.clone3(linux.OWN_NAMESPACES)
    except OSError as error:
        _close(plan)
        raise explained(f"the kernel refuses the cluster's namespaces: {error}") from error
    if pid == 0:
        os.close(go_write)
        ours.close()
        _become_init(plan, theirs, go_read)
    theirs.close()
    os.close(go_read)
    tree = Tree(options, plan, pid, Channel(ours))
    try:
        tree.note = _prepare(plan, pid)
        os.write(go_write, json.dumps(plan.cgroups.facts()).encode())
    except ClusterUsageError:
        tree.end()
        raise
    except OSError as error:
        tree.end()
        raise _not_prepared(plan, error) from error
    finally:
        os.close(go_write)
    plan.api_socket.close()
    for each in plan.nodes:
        each.close_node()
    for pair in plan.ways:
        pair[1].close()
    ours.setblocking(False)
    return tree


def _prepare(plan: Plan, pid: int) -> str:
    """Give init, the process `pid`, its ids, its networks and its control groups; return a note for the user, or "".

    Raises OSError, ClusterUsageError.
    """
    write_id_maps(pid, os.getuid(), os.getgid())
    if plan.other is not None:
        plan.other.connect(pid, plan.nodes[0].layout, plan.rings[plan.nodes[0].layout.shim])
    plan.cgroups.settle(pid)
    notes = [_IN_MEMORY.format(why=plan.why_in_memory)] if plan.why_in_memory else []
    if plan.options.node_capacity != NodeCapacity():
        # late: few nodes have a size
        from lastcall.kube.cluster.machine_size import check_node_sizes

        notes.append(check_node_sizes(plan, plan.options.node_capacity, [each.layout.name for each in plan.nodes]))
    return "; ".join(filter(None, notes))


def _not_prepared(plan: Plan, error: OSError) -> ClusterStartError:
    if plan.other is not None:
        return ClusterStartError(f"the container runtime's network cannot be joined: {error}")
    return explained(f"the kernel refuses the cluster's user id map: {error}")


def _become_init(plan: Plan, channel: socket.socket, go_read: int) -> NoReturn:
    for each in plan.nodes:
        each.close_front()
    for pair in plan.ways:
        pair[0].close()
    _wait_for_front(plan, go_read)
    init.run_init(plan, channel, _control_plane, _node, _load)


def _wait_for_front(plan: Plan, go_read: int) -> None:
    """In init: wait until its ids are written and its control groups are known. It ends where front has ended."""
    with open(go_read, "rb") as go:
        said = go.read()
    if not said:
        os._exit(70)
    plan.cgroups.take(json.loads(said))


def explained(message: str) -> ClusterStartError:
    """Return the error, with what the machine lacks if that is known."""
    # late: 8 ms of the start of `run`
    from lastcall.world import needs

    return ClusterStartError(message, needs.first_missing())


def _planned(options: ClusterOptions, identity: Identity | None, api_port: int) -> Plan:
    try:
        issuing = Issuing(identity, options.layouts)
        # Meanwhile what front and all of the roles need.
        # late: meanwhile the keys are made on another processor
        from lastcall.kube.client import http  # noqa: F401

        return make_plan(options, issuing.result(), api_port)
    except OSError as error:
        raise ClusterStartError(f"cannot make the sockets and memory files of the cluster: {error}") from error
    except ValueError as error:
        raise ClusterStartError(f"the cluster's keys cannot be used: {error}") from error


def _close(plan: Plan) -> None:
    for each in plan.nodes:
        each.close_front()
        each.close_node()
    for sock in (plan.api_socket, *chain(*plan.ways)):
        sock.close()
    plan.cgroups.remove()
    plan.user_ids.release()
    if plan.scratch is not None:
        plan.scratch.remove()
    if plan.other is not None:
        plan.other.end()


class Tree:
    """Start init, and by it the roles. `channel` has what init reports; init ends when it is closed."""

    def __init__(self, options: ClusterOptions, plan: Plan, init_pid: int, channel: Channel) -> None:
        self.options, self.plan, self.channel = options, plan, channel
        self._init_pid = init_pid
        self.note = ""
        """What the user should know of the cluster that was asked for."""
        self._has_ended = False
        """Init, and its exit status was taken."""

    def end(self) -> None:
        """Stop the tree and wait until the kernel has ended all of it (bounded). Idempotent; never raises."""
        for each in self.plan.nodes:
            each.close_front()  # again, where it had been begun with
        for way in (self.plan.store_way, self.plan.owners):
            if way is not None:
                way[0].close()
        self.channel.socket.close()
        if not self._has_ended:
            with suppress(OSError):
                pidfd = os.pidfd_open(self._init_pid)
                ended, _, _ = select.select([pidfd], [], [], _ENDS_WITHIN_SECONDS)
                if not ended:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.close(pidfd)
            self.reap_init()
            self._has_ended = True
        self.plan.cgroups.remove()  # init does it; here for one that was killed
        self.plan.user_ids.release()
        if self.plan.scratch is not None:
            self.plan.scratch.remove()
        if self.plan.other is not None and (left := self.plan.other.end()):
            _log.error("not all that the container runtime has of this cluster is gone: %s", left)

    def reap_init(self) -> Fields:
        """Reap init and return how it ended: `exitCode` and `signal`, both None if it was reaped before."""
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._init_pid, 0)
            self._has_ended = True
            return {
                "exitCode": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            }
        return {"exitCode": None, "signal": None}

    def host_pids(self, started: Mapping[int, str]) -> dict[str, int]:
        """Return role → pid in the host's PID namespace, for living roles. `started` has their pids in the cluster's.

        One that init has not reported yet is known by its name.
        """
        if self._has_ended:
            return {}
        found = {"init": self._init_pid}
        with suppress(OSError):
            for child in _children(self._init_pid):
                role = started.get(_pid_inside(child)) or _role_name(child, self.options.roles)
                found[role] = child
        return found


# -- the roles, in their own processes: each imports what only it needs, on its own processor, while front goes on -----


def _control_plane(plan: Plan) -> None:
    collect_seldom()
    with frozen_imports():
        # late: 210 ms of the start of `run`
        from lastcall.kube.cluster import control_plane
    control_plane.main(plan)


def _node(plan: Plan, own: NodePlan) -> None:
    collect_seldom()
    with frozen_imports():
        # late: 278 ms of the start of `run`
        from lastcall.kube.cluster import node
    node.main(plan, own)


def _load(plan: Plan) -> None:
    assert plan.load is not None
    assert plan.options.load is not None
    heart = plan.hearts[LOAD]

    def runs(loop: AbstractEventLoop) -> None:
        heart.start(loop)
        heart.as_usual()

    plan.options.load.serve(plan.load[1], runs)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def _pid_inside(pid: int) -> int:
    """The pid of one of init's children as the cluster sees it."""
    with open(f"/proc/{pid}/status") as file:
        return int(next(line.split()[-1] for line in file if line.startswith("NSpid:")))


def _role_name(pid: int, names: Iterable[str]) -> str:
    with open(f"/proc/{pid}/comm") as file:
        name = file.read().strip()
    # The kernel keeps 15 characters of a name.
    return next((role for role in names if f"lastcall-{role}"[:15] == name), name)
