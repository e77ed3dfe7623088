"""`AsyncCluster`: a cluster of one's own, one that runs already, or one of a kubeconfig, for one event loop."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

from lastcall.contexts import ContextOptions
from lastcall.errors import ClusterError, LastcallError, StillThere, UserError
from lastcall.experiment import ClusterProcess, unused_name
from lastcall.kube.api import NAMESPACES, StatusError, is_not_found, name_of
from lastcall.kube.cluster import AddNode, ClusterStartError, RemoveNode, parse_node_capacity
from lastcall.manifests.applying import Named
from lastcall.testing.link import Link
from lastcall.testing.namespace import AsyncNamespace, what_holds
from lastcall.testing.rollout import Rollout

__tracebackhide__ = True  # pytest shows the caller's line

NAMESPACE_SECONDS = 120.0
HELD_SECONDS = 5.0
"""How long finalizers may hold the namespace of a test: time for an operator that still runs."""


class AsyncCluster(AsyncNamespace):
    """`async with AsyncCluster() as cluster: …`, in namespace `default`.

    It runs in a process of its own and ends with the block, and also when this process is killed. Another event loop
    uses it by `AsyncCluster.attach(cluster.name)`.

    `AsyncCluster(context="prod", yes="prod")` is an existing cluster: the end of the block removes what was created.
    """

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
        """`name` is unique by default; `node_capacity` is the size of nodes (`"cpu=2,memory=4Gi"`, or several:
        `["memory=1Gi", "node-1:memory=512Mi"]`); `options` are further ones of `lastcall up` (`["--egress"]`);
        `timeout` seconds until all nodes must be Ready.

        `context` is an existing cluster, of `kubeconfig` or the file that kubectl reads; `namespace` is by default that
        of the context. `yes` allows changes, and has to be the context's name. Raises UserError.
        """
        own = {"name": name, "nodes": nodes != 1, "node_capacity": node_capacity, "options": options}
        check_arguments(context, own, (namespace, yes, kubeconfig))
        self.name = context or name or unused_name()
        sizes = [node_capacity] if isinstance(node_capacity, str) else node_capacity
        arguments = ["--nodes", str(nodes), *(f"--node-capacity={each}" for each in sizes), *options]
        self._asked = ContextOptions(kubeconfig=kubeconfig, context=context, namespace=namespace) if context else None
        self._yes = yes
        self._process: ClusterProcess | None = None if context else ClusterProcess(self.name, arguments, timeout)
        super().__init__(None, namespace or "default")

    @classmethod
    def attach(cls, name: str) -> Self:
        """Return a cluster that runs already (`lastcall up`), and goes on after the block."""
        found = cls(name)
        found._process = None
        return found

    async def start(self) -> Self:
        """Return when all nodes are Ready, or the existing cluster has answered. Raises ClusterError, UserError."""
        if self._asked is not None:
            return await self._open(self._asked)
        if sys.platform != "linux":
            # late: never needed on Linux
            from lastcall.world.elsewhere import why_not

            raise ClusterError(why_not("up", sys.platform))
        loop = asyncio.get_running_loop()
        try:
            if self._process is not None:
                await loop.run_in_executor(None, self._process.start)
            self._connected = await loop.run_in_executor(None, Link, self.name)
        except ClusterStartError as error:
            raise ClusterError(str(error)) from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def _open(self, asked: ContextOptions) -> Self:
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.testing.context_link import ContextLink

        link = ContextLink(asked, self._yes)
        await link.open()
        self._connected, self._namespace = link, link.namespace
        return self

    async def stop(self) -> None:
        """End it, unless it was only attached to; of an existing one remove what was created. Idempotent."""
        link, self._connected = self._connected, None
        if link is not None:
            await link.close()
        if self._process is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._process.stop)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # -- nodes ---------------------------------------------------------------------------------------------------------

    async def add_node(self, name: str = "", *, node_capacity: str = "", timeout: float = 60.0) -> str:
        """Add a node to the running cluster, and return its name when it is Ready: `lastcall node add`.

        `name` is the next free one by default; `node_capacity` is its size (`"cpu=2,memory=4Gi"`). Raises ClusterError,
        with nothing of the node left, and UserError for an existing cluster.
        """
        self._link.check_own("add_node")
        try:
            declared = parse_node_capacity([node_capacity] if node_capacity else [])
        except ValueError as error:
            raise UserError(f"node_capacity {error}") from None
        if declared.nodes:
            raise UserError(
                f"node_capacity={node_capacity!r} names a node, and applies to the new one only. "
                "Leave out the name and colon"
            )
        asked = AddNode(node=name, capacity=dict(declared.every), timeout=timeout)
        return str((await self._own.change_nodes(asked))["node"])

    async def remove_node(
        self,
        name: str,
        *,
        grace: int | None = None,
        timeout: float = 0.0,
        force: bool = False,
        ignore_daemonsets: bool = False,
        delete_emptydir_data: bool = False,
    ) -> None:
        """Remove a node from the running cluster, after a drain: `lastcall node remove`, whose options these are.

        `grace` seconds for every Pod, its own by default; the drain may take `timeout` seconds, 0 is as long as it
        takes. Raises ClusterError when the drain fails: the node stays and takes Pods again. A call that is cancelled
        during the drain does the same. Raises UserError for an existing cluster.
        """
        self._link.check_own("remove_node")
        asked = RemoveNode(
            node=name,
            grace=grace,
            timeout=timeout,
            force=force,
            ignore_daemonsets=ignore_daemonsets,
            delete_emptydir_data=delete_emptydir_data,
        )
        await self._own.change_nodes(asked)

    @property
    def _own(self) -> Link:
        assert isinstance(self._link, Link)
        return self._link

    # -- namespaces ----------------------------------------------------------------------------------------------------

    def in_namespace(self, name: str) -> AsyncNamespace:
        """Return the same cluster, with another namespace for objects that name none. It is created by the first
        `apply`."""
        return AsyncNamespace(self._link, name)

    async def create_namespace(self, name: str = "") -> AsyncNamespace:
        """Return a new namespace, with a name that nobody has by default. Raises UserError for an existing cluster."""
        self._link.check_own("create_namespace")
        found = self.in_namespace(name or unused_name("test"))
        await found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.namespace}})
        return found

    async def delete_namespace(
        self, name: str, timeout: float = NAMESPACE_SECONDS, *, grace: int | None = None, held: float | None = None
    ) -> None:
        """Delete a namespace and wait until it is gone; `grace` seconds for its Pods, their own by default.

        Raises StillThere, with what holds it, after `timeout` seconds, and once finalizers or an API that does not
        answer have held it for `held` seconds. Raises UserError for an existing cluster.
        """
        self._link.check_own("delete_namespace")
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings import is_held

        if grace is not None:
            await self._delete_owners(name)
            await self._end_pods(name, grace)
        try:
            await self._objects.client.delete(NAMESPACES, name)
        except StatusError as error:
            if not is_not_found(error):
                raise
        if grace is not None:
            await self._end_pods(name, grace)  # what a controller that is not Kubernetes's made meanwhile
        named = Named(NAMESPACES, "", name)
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(timeout):
                if held is not None:
                    await self._objects.wait(named, lambda obj: obj is None or is_held(obj))
                async with asyncio.timeout(held):
                    await self._objects.wait(named, lambda obj: obj is None)
        except TimeoutError:
            seconds = asyncio.get_running_loop().time() - began
            raise await self._what_holds(named, seconds, held) from None

    async def _what_holds(self, named: Named, seconds: float, held: float | None) -> StillThere:
        """Return the error with each object that keeps a namespace, else with what the namespace says."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings import fix, is_held, kinds_left, wait_of
        from lastcall.experiment.reasons import what_refuses_the_delete

        namespace = await self._objects.get(named)
        if namespace is None:
            return StillThere(f"namespace {named.name} was gone only after {seconds:.0f} s")
        since = f", and held for {held:g} s" if held and is_held(namespace) else ""
        lines, causes = [f"namespace {named.name} is not gone after {seconds:.0f} s{since}:"], []
        for word in kinds_left(namespace):
            with suppress(LastcallError, StatusError):
                resource = await self._objects.kind(word)
                for each in (await self._objects.client.list(resource, named.name)).items:
                    if wait_of(each, resource.kind):
                        there = Named(resource, named.name, name_of(each))
                        causes.append(await what_holds(self._objects.client, there, each))
                        lines.append(causes[-1].text)
                    refused = await what_refuses_the_delete(self._objects.client, resource, each)
                    lines += [f"{resource.kind} {named.name}/{name_of(each)}:", *refused] if refused else []
        wait = wait_of(namespace, "Namespace")
        if len(lines) > 1:
            lines.append(f"  fix: {fix('waitsFor', 'NamespaceFinalizersRemaining')}")
        else:
            lines += wait.lines if wait else ["its Pods, or other objects, still end"]
        return StillThere("\n".join(lines), causes)

    async def _delete_owners(self, namespace: str) -> None:
        """Delete what makes Pods in a namespace and leave the Pods: an owner that is being deleted replaces none."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.kube.api import resources as r

        client = self._objects.client
        if not any(pod["metadata"].get("ownerReferences") for pod in (await client.list(r.PODS, namespace)).items):
            return
        owners = (r.CRONJOBS, r.DEPLOYMENTS, r.REPLICASETS, r.STATEFULSETS, r.DAEMONSETS, r.JOBS)
        for resource in (*owners, r.REPLICATIONCONTROLLERS):
            for each in (await client.list(resource, namespace)).items:
                with suppress(StatusError):
                    await client.delete(resource, each["metadata"]["name"], namespace, propagation_policy="Orphan")

    async def _end_pods(self, namespace: str, grace: int) -> None:
        """Delete the Pods of a namespace with this grace period (seconds).

        Before the namespace is deleted: it deletes its Pods with their own grace period, and a shorter one that comes
        afterwards does not interrupt a stop under way.
        """
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.kube.api import PODS

        for pod in (await self._objects.client.list(PODS, namespace)).items:
            with suppress(StatusError):
                await self._objects.client.delete(PODS, pod["metadata"]["name"], namespace, grace_period_seconds=grace)

    @asynccontextmanager
    async def temporary_namespace(self, name: str = "", *, grace: int | None = None) -> AsyncIterator[AsyncNamespace]:
        """Give a namespace for the time of a block. Raises StillThere at its end if finalizers hold the namespace."""
        self._link.check_own("temporary_namespace")
        found = await self.create_namespace(name)
        try:
            yield found
        finally:
            await self.delete_namespace(found.namespace, grace=grace, held=HELD_SECONDS)

    async def rollout(self, *manifests: Any, timeout: float = 600.0, **options: Any) -> Rollout:
        """Run `lastcall rollout` with these manifests, in a cluster of its own: see `lastcall.rollout`.

        In an existing cluster `rollout("deployment/web")` disrupts a workload that is there: `lastcall rollout
        --context`.
        """
        return await self._link.rollout(manifests, timeout, options)


def check_arguments(context: str, own: Mapping[str, object], existing: Sequence[str]) -> None:
    """Raise UserError for arguments of a cluster of one's own with `context`, and those of a context without it."""
    if context and (given := [name for name, value in own.items() if value]):
        raise UserError(
            f"{given[0]}= is for a cluster of its own, and context={context!r} exists: leave one of them out"
        )
    if not context and any(existing):
        raise UserError('namespace=, yes= and kubeconfig= are for an existing cluster: add context="NAME"')
