"""The life of a staying cluster in this process, from the claim of its name to its end."""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.cli.errors import start_failure
from lastcall.cli.staying.clusters import cluster_errors
from lastcall.errors import LastcallError, UserError, WorldError
from lastcall.kube.api import StatusError
from lastcall.kube.client import ConnectionLost
from lastcall.kube.cluster import (
    FACTS,
    ClusterDirectory,
    ClusterOptions,
    ClusterStartError,
    Parent,
    Report,
    StateDirectory,
    claim,
    encode,
)
from lastcall.world.clock import RealClock
from lastcall.world.dataclass import dataclass
from lastcall.world.interrupts import Interrupts
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api import Object
    from lastcall.kube.cluster import Front, KeptNodes, PublishedPort, StateDirectory
    from lastcall.ui import AskedPage
    from lastcall.ui.command_page import PageLink

Facts = dict[str, Any]

TORN_DOWN = "tearing down the cluster"


@dataclass(frozen=True, slots=True)
class UpOptions:
    """`state` is a directory, "" for none; `timeout` seconds until the node must be Ready, and again
    until `objects` are, with `wait`; `namespace` is that of objects that name none."""

    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    state: str = ""
    timeout: float = 60.0
    output: str = "text"
    publish: tuple["PublishedPort", ...] = ()
    publish_node_ports: bool = False
    kubeconfig_merge: bool = False
    die_with_parent: bool = False
    die_with: int = 0
    objects: "tuple[Object, ...]" = ()
    namespace: str = "default"
    wait: bool = False
    page: "AskedPage | None" = None

    @property
    def name(self) -> str:
        return self.cluster.name

    @property
    def ends_with_another(self) -> bool:
        """Return whether it ends with its parent, or with the process `die_with`."""
        return self.die_with_parent or bool(self.die_with)


class Teller(Protocol):
    """Where a starting cluster says how far it is."""

    def note(self, text: str) -> None: ...
    def ready(self, facts: Facts) -> None: ...


def stay(options: UpOptions, teller: Teller, report: Report | None = None) -> int:
    """Start a cluster, stay until its end. Return the exit status.

    `report` is there when this process is in the background. Raises LastcallError. What a cluster in the background
    leaves when it ended by itself is its directory with the log: the next command reports it.
    """
    os.umask(0o077)  # a umask may also take too much away
    with cluster_errors():
        directory: list[ClusterDirectory] = []

        def leave(status: int) -> None:
            for each in directory:
                each.remove()
            os._exit(status)

        with Interrupts(leave, TORN_DOWN) as interrupts, ExitStack() as stack:
            parent = stack.enter_context(closing(_parent(options))) if options.ends_with_another else None
            directory.append(claim(options.name))
            life = _Life(options, teller, report, interrupts, directory[0], parent)
            try:
                # Tell commands that wait for the name which process holds it.
                directory[0].write(
                    FACTS, encode({"name": options.name, "pid": os.getpid(), "phase": "starting"}).decode()
                )
                return life.live()
            finally:
                if not life.leave_the_log:
                    directory[0].remove()
                directory[0].close()


def _on_state(options: ClusterOptions, state: "StateDirectory | None") -> "tuple[ClusterOptions, KeptNodes]":
    """The options with the nodes that were added to the cluster of this state, and without those that were removed."""
    # late: 51 ms of `up --help`
    from lastcall.kube.cluster import KeptNodes

    if state is None:
        return options, KeptNodes()
    kept = state.nodes()
    numbers = kept.numbers(options.nodes)
    if options.container_runtime and len(numbers) > 1:
        raise UserError(
            "--container-runtime-endpoint: the cluster of this --state has several nodes, and such a cluster has one. "
            "Name another directory"
        )
    nodes = replace(options, nodes=len(numbers), numbers=numbers, node_capacity=kept.capacity(options.node_capacity))
    return replace(nodes, state=state.durable), kept


def _parent(options: UpOptions) -> Parent:
    try:
        return Parent(options.die_with)
    except ProcessLookupError:
        raise WorldError(f"--die-with {options.die_with}: that process has ended") from None


class _Life:
    def __init__(
        self,
        options: UpOptions,
        teller: Teller,
        report: Report | None,
        interrupts: Interrupts,
        directory: ClusterDirectory,
        parent: Parent | None,
    ) -> None:
        self._options = options
        self._teller = teller
        self._report = report
        self._interrupts = interrupts
        self._directory = directory
        self._parent = parent
        self._is_up = False
        self.leave_the_log = False
        self._merged_into: Path | None = None
        self._page: PageLink | None = None

    def live(self) -> int:
        state = self._open_state()
        try:
            return self._with_state(state)
        finally:
            if state is not None:
                state.close()

    def _open_state(self) -> "StateDirectory | None":
        if not self._options.state:
            return None
        state = StateDirectory.open(self._options.state)
        for note in state.notes:
            self._teller.note(note)
        return state

    def _with_state(self, state: "StateDirectory | None") -> int:
        self._interrupts.check()
        # late: 51 ms of `up --help`
        from lastcall.kube.cluster import Front, FrontLog, PublishedPorts, start

        self._interrupts.check()
        options, kept = _on_state(self._options.cluster, state)
        identity, port = state.credentials() if state is not None else (None, 0)
        log = FrontLog(self._directory)
        if self._report is not None:
            for fd in (1, 2):
                os.dup2(log.fd, fd)
        published = PublishedPorts(
            self._options.publish,
            node_ports=self._options.publish_node_ports,
            node_ip=options.layouts[0].ip,
            world=World(),
        )
        try:
            cluster = start(options, identity, port)
        except ClusterStartError as error:
            log.close()
            raise start_failure(error) from error
        try:
            if cluster.note:
                self._teller.note(cluster.note)
            published.listen()  # now: no role is to inherit the sockets
            self._interrupts.check()
            if state is not None and identity is not None:
                state.keep_credentials(identity, cluster.api_port)
            if port not in (0, cluster.api_port):
                self._teller.note(
                    f"port {port} is in use: the API server now listens at {cluster.server}, and earlier kubeconfigs "
                    f"no longer work"
                )
            path = state.path if state is not None else ""
            if options.etcd is not None:
                path = ", ".join(filter(None, (*options.etcd.servers, path)))
            detached = self._report is not None
            if detached and (why := cluster.ends_at_logout()):
                self._teller.note(
                    f"the cluster ends when you log out: {why}. To keep it running: sudo loginctl enable-linger $USER"
                )
            front = Front(cluster, options, self._directory, log, path, detached, published, kept=kept)
            front.warn = self._warn
            return self._run(front)
        finally:
            published.close()
            self._unmerge_kubeconfig()
            if self._page is not None:
                self._page.close()
            cluster.stop()
            log.close()

    def _warn(self, text: str) -> None:
        """Print `text`. Nobody reads it once a detached cluster is up."""
        if self._report is None or not self._is_up:
            self._teller.note(text)

    def _run(self, front: "Front") -> int:
        try:
            asyncio.run(self._in_loop(front))
        except asyncio.CancelledError:
            if not self._is_up and self._interrupts.number:
                raise self._interrupts.error() from None
            return 0 if self._is_up else 1
        except LastcallError:
            raise
        except Exception as error:
            front.log.write(f"{type(error).__name__}: {error}")
            self.leave_the_log = self._is_up and self._report is not None
            raise
        if not self._is_up:
            whose = "its node was" if self._options.cluster.nodes == 1 else "its nodes were"
            raise WorldError(f"cluster {self._options.name!r} was stopped (lastcall down) before {whose} Ready")
        return 0

    async def _show_then(
        self, asked: "AskedPage", front: "Front", facts: Facts, go_on: Callable[[Facts], None]
    ) -> None:
        """Serve the live page until the end, and go on when its link is known, or why it is not available."""
        # late: only with --ui
        from lastcall.ui.command_page import PageLink

        name, clock = self._options.name, RealClock()
        self._page = page = PageLink(asked, name, lambda text: None, cluster=name)
        with page.turning():
            link = await page.linked(clock)
            if not link:
                self._teller.note(f"there is no page: {page.failed or 'its process does not start'}")
            page.say = front.log.write if self._report is not None else self._teller.note
            go_on({**facts, "page": link} if link else facts)
            await asyncio.Event().wait()

    async def _apply_then(self, facts: Facts, tell: Callable[[Facts], None]) -> None:
        """Apply what `up -f` was given, and tell when it is done, or why not: the cluster is up all the same."""
        # late: 260 ms of `up --help`
        from lastcall.experiment.ready import Objects, apply, wait_ready
        from lastcall.kube.client import client_for, load_kubeconfig

        options = self._options
        client = client_for(load_kubeconfig(facts["kubeconfig"]))
        try:
            objects = Objects(client, RealClock())
            applied = await apply(objects, options.objects, options.namespace, options.timeout)
            if options.wait:
                await wait_ready(objects, applied, options.namespace, options.timeout)
        except (LastcallError, StatusError, ConnectionLost) as error:
            facts = {**facts, "notApplied": str(error)}
        finally:
            await client.close()
        tell(facts)

    def _merge_kubeconfig(self, content: str) -> None:
        """Report what cannot be merged; the cluster is up all the same."""
        # late: 232 ms of `up --help`
        import yaml

        from lastcall.kube.client import KubeconfigError, entry_name, merge, users_kubeconfig

        path = users_kubeconfig()
        try:
            merge(path, self._options.name, yaml.safe_load(content))
        except KubeconfigError as error:
            self._teller.note(f"the kubeconfig was not merged: {error}")
            return
        self._merged_into = path
        self._teller.note(f"context {entry_name(self._options.name)} is in {path}, and the current one")

    def _unmerge_kubeconfig(self) -> None:
        if self._merged_into is None:
            return
        # late: 232 ms of `up --help`
        from lastcall.kube.client import KubeconfigError, unmerge

        try:
            unmerge(self._merged_into, self._options.name)
        except KubeconfigError as error:
            self._teller.note(str(error))

    async def _in_loop(self, front: "Front") -> None:  # noqa: PLR0915 - it nests what has to be undone in order
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        assert task is not None

        # A signal's handler runs outside of the loop, which may sleep.
        self._interrupts.on_first = lambda: loop.call_soon_threadsafe(task.cancel)
        self._interrupts.check()
        if self._report is not None:
            loop.add_reader(self._report.socket, task.cancel)
        if self._parent is not None:
            self._parent.on_end(loop, task.cancel)

        def ready(facts: Facts) -> None:
            self._is_up = True
            if self._options.kubeconfig_merge:
                self._merge_kubeconfig(front.cluster.kubeconfig())
            if self._options.page is not None:
                tasks.spawn(self._show_then(self._options.page, front, facts, apply), name="page")
            else:
                apply(facts)

        def apply(facts: Facts) -> None:
            if self._options.objects:
                tasks.spawn(self._apply_then(facts, tell), name="apply")
            else:
                tell(facts)

        def tell(facts: Facts) -> None:
            if self._report is not None:
                loop.remove_reader(self._report.socket)
            self._teller.ready(facts)
            if self._report is not None:
                self._report.close()

        failure: Exception | None = None
        try:
            async with Tasks() as tasks:
                try:
                    with front.guards():
                        await front.run(ready, self._options.timeout)
                except Exception as error:
                    failure = error  # raised without the task group around it
                finally:
                    tasks.cancel()
            if failure is not None:
                raise failure
        except ClusterStartError as error:
            raise start_failure(error) from error
        finally:
            self._interrupts.on_first = None
