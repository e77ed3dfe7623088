"""`Cluster` and `Namespace`: the same as `AsyncCluster` and `AsyncNamespace`, for code without an event loop.

Each cluster has a thread with a loop of its own, so that it can be used in any thread, also where another loop runs.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from lastcall.experiment.ready import ObjectList
from lastcall.kube.api import Object
from lastcall.manifests.applying import Manifests, Reference
from lastcall.testing.cluster import AsyncCluster
from lastcall.testing.ending import Ending
from lastcall.testing.namespace import REACH_SECONDS, READY_SECONDS, AsyncNamespace
from lastcall.testing.rollout import Rollout, run_rollout
from lastcall.testing.sent import Requests
from lastcall.testing.streams import ExecResult

__tracebackhide__ = True  # pytest shows the caller's line

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread; started by the first `run`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, or raise its exception. Ctrl-C cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return _result(future)
        except BaseException:
            future.cancel()
            raise

    @contextmanager
    def held(self, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Hold an asynchronous block for the time of this one, entered and left by one task."""
        loop, leave = self._started(), asyncio.Event()
        entered: Future[T] = Future()

        async def hold() -> None:
            try:
                async with context as value:
                    entered.set_result(value)
                    await leave.wait()
            except BaseException as error:
                if entered.done():
                    raise
                entered.set_exception(error)

        held = asyncio.run_coroutine_threadsafe(hold(), loop)
        try:
            yield _result(entered)
        finally:
            loop.call_soon_threadsafe(leave.set)
            _result(held)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="lastcall", daemon=True).start()
            return self._loop

    def close(self) -> None:
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


def _result(future: "Future[T]") -> T:
    """Return or raise as `future.result()` does, without the lines of its module in pytest's report."""
    wait([future])
    if (error := future.exception()) is not None:
        raise error
    return future.result()


class Namespace:
    """A namespace of a cluster that runs; `AsyncNamespace` says what each method does, and what it raises."""

    def __init__(self, asynchronous: AsyncNamespace, thread: LoopThread) -> None:
        self._async = asynchronous
        self._thread = thread
        self.endings: list[Ending] = []
        """What `delete` answered, in order."""

    @property
    def namespace(self) -> str:
        """Return where objects without a namespace of their own are."""
        return self._async.namespace

    @property
    def kubeconfig(self) -> str:
        """Return the path of the cluster's kubeconfig (0600). Raises UserError for an existing cluster."""
        return self._async.kubeconfig

    @property
    def server(self) -> str:
        """Return where its API server is: `https://127.0.0.1:<port>`."""
        return self._async.server

    def apply(self, *manifests: Manifests, wait: bool = False, timeout: float = READY_SECONDS) -> ObjectList:
        """Apply paths, YAML text and objects on the server; with `wait`, wait until all of it is ready."""
        return self._thread.run(self._async.apply(*manifests, wait=wait, timeout=timeout))

    def get(self, reference: Reference) -> Object:
        """Return the object as it is now."""
        return self._thread.run(self._async.get(reference))

    def list(self, kind: str, *, labels: str = "", fields: str = "", all_namespaces: bool = False) -> ObjectList:
        """Return the objects of a kind, by label and field selectors."""
        found = self._async.list(kind, labels=labels, fields=fields, all_namespaces=all_namespaces)
        return self._thread.run(found)

    def wait_ready(self, *references: Reference, timeout: float = READY_SECONDS) -> None:
        """Return when all of them are ready. Raises NotReady, which says why they are not."""
        self._thread.run(self._async.wait_ready(*references, timeout=timeout))

    def wait_for(self, reference: Reference, condition: str, *, timeout: float = READY_SECONDS) -> None:
        """Return when an object is as `condition` says, in the words of kubectl wait: `condition=Ready`,
        `jsonpath={.status.pod}=w`, `create`, `delete`. Raises NotReady, with its status, Events and Pods."""
        self._thread.run(self._async.wait_for(reference, condition, timeout=timeout))

    def pods(self, reference: Reference) -> ObjectList:
        """Return the Pods of a workload, or of another object that owns some."""
        return self._thread.run(self._async.pods(reference))

    def delete(
        self,
        *references: Reference,
        grace: int | None = None,
        load: str | Requests | None = None,
        timeout: float | None = None,
        missing_ok: bool = False,
    ) -> Ending:
        """Delete, wait until all is gone, and tell how its Pods ended; with `load="svc/web:80"` under requests."""
        work = self._async.delete(*references, grace=grace, load=load, timeout=timeout, missing_ok=missing_ok)
        ending = self._thread.run(work)
        self.endings.append(ending)
        return ending

    def story(self, pod: Reference | None = None) -> Ending:
        """Return how a Pod ended, or how far its end is; without `pod`, of all that were to end in the namespace."""
        return self._thread.run(self._async.story(pod))

    def logs(self, pod: Reference, container: str = "", *, previous: bool = False, tail: int | None = None) -> str:
        """Return what a container has printed."""
        return self._thread.run(self._async.logs(pod, container, previous=previous, tail=tail))

    def exec(
        self,
        pod: Reference,
        *command: str,
        container: str = "",
        stdin: str | bytes | None = None,
        timeout: float = 60.0,
    ) -> ExecResult:
        """Run a command in a container."""
        return self._thread.run(self._async.exec(pod, *command, container=container, stdin=stdin, timeout=timeout))

    @contextmanager
    def port_forward(self, pod: Reference, port: int) -> Iterator[str]:
        """Give `http://127.0.0.1:<port>`, which leads to a Pod's port, until the block ends."""
        with self._thread.held(self._async.port_forward(pod, port)) as url:
            yield url

    def url(self, target: str, *, timeout: float = REACH_SECONDS) -> str:
        """Return `http://127.0.0.1:<port>`, which leads to `svc/web:80` through the service proxy."""
        return self._thread.run(self._async.url(target, timeout=timeout))

    def dump(self) -> str:
        """Return Pods, Events and the last lines of each container, for debugging."""
        return self._thread.run(self._async.dump())

    def events(self) -> ObjectList:
        """Return the namespace's Events."""
        return self._thread.run(self._async.events())


class Cluster(Namespace):
    """`with lastcall.Cluster() as cluster: …`, in namespace `default`; `AsyncCluster` says more.

    `Cluster(context="prod", yes="prod")` is an existing cluster: the end of the block removes what was created.
    """

    _async: AsyncCluster

    def __init__(
        self,
        name: str = "",
        *,
        nodes: int = 1,
        node_capacity: str | Sequence[str] = (),
        options: Sequence[str] = (),
        timeout: float = 60.0,
        context: str = "",
        namespace: str = "",
        yes: str = "",
        kubeconfig: str = "",
    ) -> None:
        """As `AsyncCluster`: `options` are further ones of `lastcall up`, `context` is an existing cluster, and `yes`
        allows changes of it."""
        asynchronous = AsyncCluster(
            name,
            nodes=nodes,
            node_capacity=node_capacity,
            options=options,
            timeout=timeout,
            context=context,
            namespace=namespace,
            yes=yes,
            kubeconfig=kubeconfig,
        )
        super().__init__(asynchronous, LoopThread())

    @classmethod
    def attach(cls, name: str) -> Self:
        """Return a cluster that runs already (`lastcall up`), and goes on after the block."""
        found = cls(name)
        found._async = AsyncCluster.attach(name)
        return found

    @property
    def name(self) -> str:
        """Return what other commands and processes call it: `lastcall story --name`, `Cluster.attach`."""
        return self._async.name

    def start(self) -> Self:
        """Return when all nodes are Ready, or the existing cluster has answered."""
        try:
            self._thread.run(self._async.start())
        except BaseException:
            self._thread.close()
            raise
        return self

    def stop(self) -> None:
        """End it, unless it was only attached to; of an existing one remove what was created. Idempotent."""
        try:
            self._thread.run(self._async.stop())
        finally:
            self._thread.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def add_node(self, name: str = "", *, node_capacity: str = "", timeout: float = 60.0) -> str:
        """Add a node to the running cluster, and return its name when it is Ready: see `AsyncCluster.add_node`."""
        return self._thread.run(self._async.add_node(name, node_capacity=node_capacity, timeout=timeout))

    def remove_node(
        self,
        name: str,
        *,
        grace: int | None = None,
        timeout: float = 0.0,
        force: bool = False,
        ignore_daemonsets: bool = False,
        delete_emptydir_data: bool = False,
    ) -> None:
        """Remove a node from the running cluster, after a drain: see `AsyncCluster.remove_node`."""
        removing = self._async.remove_node(
            name,
            grace=grace,
            timeout=timeout,
            force=force,
            ignore_daemonsets=ignore_daemonsets,
            delete_emptydir_data=delete_emptydir_data,
        )
        self._thread.run(removing)

    def in_namespace(self, name: str) -> Namespace:
        """Return the same cluster, with another namespace for objects that name none."""
        return Namespace(self._async.in_namespace(name), self._thread)

    def create_namespace(self, name: str = "") -> Namespace:
        """Return a new namespace, with a name that nobody has by default. Raises UserError for an existing cluster."""
        return Namespace(self._thread.run(self._async.create_namespace(name)), self._thread)

    def delete_namespace(
        self, name: str, timeout: float = 120.0, *, grace: int | None = None, held: float | None = None
    ) -> None:
        """Delete a namespace and wait until it is gone. Raises StillThere, with what holds it."""
        self._thread.run(self._async.delete_namespace(name, timeout, grace=grace, held=held))

    @contextmanager
    def temporary_namespace(self, name: str = "", *, grace: int | None = None) -> Iterator[Namespace]:
        """Give a namespace for the time of a block. Raises StillThere at its end if finalizers hold the namespace."""
        with self._thread.held(self._async.temporary_namespace(name, grace=grace)) as found:
            yield Namespace(found, self._thread)

    def rollout(self, *manifests: Manifests, timeout: float = 600.0, **options: Any) -> Rollout:
        """Run `lastcall rollout` with these manifests, in a cluster of its own: see `lastcall.rollout`.

        In an existing cluster `rollout("deployment/web")` disrupts a workload that is there: `lastcall rollout
        --context`.
        """
        return self._thread.run(self._async.rollout(*manifests, timeout=timeout, **options))


def rollout(*manifests: Manifests, timeout: float = 600.0, **options: Any) -> Rollout:
    """Run `lastcall rollout` with paths, YAML text or objects; options by keyword: `load=200`, `disrupt="drain"`,
    `runs=3`.

    Raises InvalidManifest, NotReady, ClusterError, TimeoutError.
    """
    thread = LoopThread()
    try:
        return thread.run(run_rollout(manifests, timeout, options))
    finally:
        thread.close()
