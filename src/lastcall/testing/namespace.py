"""What can be done in one namespace of a cluster, async: `AsyncNamespace`, and `AsyncCluster` for `default`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lastcall.errors import ClusterError, HeldObject, LastcallError, NotFound, StillThere
from lastcall.experiment.ready import ObjectList, Objects, pods_below, pods_that_go
from lastcall.experiment.ready import apply as apply_objects
from lastcall.experiment.ready import wait_for as wait_for_condition
from lastcall.experiment.ready import wait_ready as wait_until_ready
from lastcall.kube.api import EVENTS, PODS, Object, name_of, namespace_of, uid_of
from lastcall.kube.client import Client
from lastcall.manifests.applying import Manifests, Named, Reference, read
from lastcall.testing.reach import until_reachable
from lastcall.testing.sent import Requests, sending
from lastcall.testing.streams import ExecResult, forwarded, run_command

if TYPE_CHECKING:
    from lastcall.testing.context_link import ContextLink
    from lastcall.testing.ending import Ending
    from lastcall.testing.link import Link

__tracebackhide__ = True  # pytest shows the caller's line

READY_SECONDS = 60.0
REACH_SECONDS = 10.0
GONE_SECONDS = 60.0
"""More than the grace period that a deletion may take."""
GRACE_SECONDS = 30


class AsyncNamespace:
    """A namespace of a cluster that runs. Methods raise LastcallError, StatusError and ConnectionLost."""

    def __init__(self, link: "Link | ContextLink | None", namespace: str) -> None:
        self._connected = link
        self._namespace = namespace

    @property
    def _link(self) -> "Link | ContextLink":
        if self._connected is None:
            raise ClusterError("the cluster is not started: use `with`, or start() and stop()")
        return self._connected

    @property
    def namespace(self) -> str:
        """Return where objects without a namespace of their own are."""
        return self._namespace

    @property
    def kubeconfig(self) -> str:
        """Return the path of the cluster's kubeconfig (0600). Raises UserError for an existing cluster."""
        return self._link.kubeconfig

    @property
    def server(self) -> str:
        """Return where its API server is: `https://127.0.0.1:<port>`."""
        return self._link.server

    @property
    def _objects(self) -> Objects:
        return self._link.objects

    async def _named(self, reference: Reference) -> Named:
        return await self._objects.find(reference, self._namespace)

    async def _existing(self, reference: Reference) -> tuple[Named, Object]:
        named = await self._named(reference)
        obj = await self._objects.get(named)
        if obj is None:
            raise NotFound(f"{named} does not exist")
        return named, obj

    # -- objects -------------------------------------------------------------------------------------------------------

    async def apply(self, *manifests: Manifests, wait: bool = False, timeout: float = READY_SECONDS) -> ObjectList:
        """Apply everything in `manifests` on the server: paths, YAML text, objects. Return what the server answered.

        Namespaces that are used and not defined are created. With `wait`, return when all of it is ready: see
        `wait_ready`. Raises InvalidManifest, and NotReady after `timeout` seconds. In an existing cluster only new
        objects are created, and the end of the block removes them; UserError names those that cannot be.
        """
        self._link.allow("apply", self._namespace)
        found = read(manifests)
        applied = await apply_objects(self._objects, found, self._namespace, timeout)
        if wait:
            await wait_until_ready(self._objects, applied, self._namespace, timeout)
        return applied

    async def get(self, reference: Reference) -> Object:
        """Return the object as it is now. Raises NotFound when it does not exist."""
        return (await self._existing(reference))[1]

    async def list(self, kind: str, *, labels: str = "", fields: str = "", all_namespaces: bool = False) -> ObjectList:
        """Return the objects of a kind, by label and field selectors."""
        resource = await self._objects.kind(kind)
        namespace = "" if all_namespaces or not resource.namespaced else self._namespace
        listed = await self._objects.client.list(resource, namespace, label_selector=labels, field_selector=fields)
        return listed.items

    async def wait_ready(self, *references: Reference, timeout: float = READY_SECONDS) -> None:
        """Return when all of them are ready: Pods Ready (or Succeeded), workloads rolled out, Jobs complete,
        PersistentVolumeClaims Bound. An object of a kind that Kubernetes does not have is ready unless its status says
        otherwise: condition Ready, Reconciling or Stalled, observedGeneration. Other kinds are as soon as they exist.

        Raises NotReady, with what their Pods, Events and logs say, after `timeout` seconds, and at once for what
        waiting cannot change: an image that does not exist, a container that crashes again and again, a failed Job.
        """
        await wait_until_ready(self._objects, references, self._namespace, timeout)

    async def wait_for(self, reference: Reference, condition: str, *, timeout: float = READY_SECONDS) -> None:
        """Return when an object is as `condition` says, in the words of kubectl wait: `condition=Ready`,
        `condition=Ready=False`, `jsonpath={.status.phase}=Running`, `jsonpath={.status.pod}`, `create`, `delete`.

        It need not exist yet. Raises NotReady after `timeout` seconds, with its status, Events and Pods.
        """
        await wait_for_condition(self._objects, await self._named(reference), condition, timeout)

    async def pods(self, reference: Reference) -> ObjectList:
        """Return the Pods of a workload, or of another object that owns some."""
        return await pods_below(self._objects, [await self._existing(reference)])

    # -- the end -------------------------------------------------------------------------------------------------------

    async def delete(
        self,
        *references: Reference,
        grace: int | None = None,
        load: str | Requests | None = None,
        timeout: float | None = None,
        missing_ok: bool = False,
    ) -> "Ending":
        """Delete objects as `kubectl delete` does, wait until they and their Pods are gone, and tell how these ended.

        `grace` is the DELETE's gracePeriodSeconds (of Pods only). With `load` (`svc/web:80`, or Requests) requests are
        sent over a published port meanwhile: `Ending.lost_requests`. `timeout` seconds until all is gone, by default a
        minute more than the grace period. Raises NotFound for an object that does not exist, unless `missing_ok`;
        StillThere; and UserError for what this program has not created in an existing cluster.
        """
        found = []
        for each in references:
            try:
                found.append(await self._existing(each))
            except NotFound:
                if not missing_ok:
                    raise
        for named, obj in found:
            self._link.allow("delete", named.namespace)
            self._objects.check_delete(named, obj)
        pods = await pods_that_go(self._objects, found)
        if load is None:
            return await self._delete(found, pods, grace, timeout)
        requests = Requests(load) if isinstance(load, str) else load
        address = await self._address(requests.target)
        async with sending(requests, address, self._objects.clock) as sent:
            ending = await self._delete(found, pods, grace, timeout)
        return replace(ending, sent=sent)

    async def _delete(
        self, found: Sequence[tuple[Named, Object]], pods: Sequence[Object], grace: int | None, timeout: float | None
    ) -> "Ending":
        uids = [uid_of(pod) for pod in pods]
        async with self._link.following(pods):
            await self._delete_all(found, pods, grace, timeout)
        return await self._link.endings(uids)

    async def _delete_all(
        self, found: Sequence[tuple[Named, Object]], pods: Sequence[Object], grace: int | None, timeout: float | None
    ) -> None:
        client = self._objects.client
        for named, obj in found:
            of_pod = grace if named.resource == PODS else None
            await client.delete(
                named.resource, named.name, named.namespace, grace_period_seconds=of_pod, uid=uid_of(obj),
                propagation_policy="Background",
            )  # fmt: skip
        longest = max((_grace_of(pod, grace) for pod in pods), default=0)
        seconds = timeout if timeout is not None else longest + GONE_SECONDS
        wanted = {Named(PODS, namespace_of(pod), name_of(pod)): uid_of(pod) for pod in pods}
        wanted |= {named: uid_of(obj) for named, obj in found}
        try:
            async with asyncio.timeout(seconds):
                for named, uid in wanted.items():
                    await self._objects.wait(named, partial(_is_gone, uid))
        except TimeoutError:
            raise await self._still_there(wanted, seconds) from None

    async def _still_there(self, wanted: dict[Named, str], seconds: float) -> StillThere:
        lines, causes = [f"not gone after {seconds:g} s:"], []
        for named, uid in wanted.items():
            obj = await self._objects.get(named)
            if obj is None or uid_of(obj) != uid:
                continue
            causes.append(held := await what_holds(self._objects.client, named, obj))
            lines += [held.text, *([f"  fix: {held.advice}"] if held.advice else [])]
        return StillThere("\n".join(lines), causes)

    async def story(self, pod: Reference | None = None) -> "Ending":
        """Return how a Pod ended, or how far its end is, from what the cluster remembers: of the latest Pod of that
        name. Without `pod`: of every Pod of the namespace that was to end.

        Raises LastcallError when nothing of it has ended. Of an existing cluster only ends by `delete` are known.
        """
        if pod is None:
            return await self._link.stories(self._namespace)
        named = await self._named(pod)
        return await self._link.story(named.namespace, named.name)

    # -- what runs -----------------------------------------------------------------------------------------------------

    async def logs(
        self, pod: Reference, container: str = "", *, previous: bool = False, tail: int | None = None
    ) -> str:
        """Return what a container has printed: the first container of the Pod, or of a workload's first Pod."""
        obj = await self._pod(pod)
        chunks = [
            chunk
            async for chunk in self._objects.client.pod_log(
                namespace_of(obj), name_of(obj), container or _first(obj), previous=previous, tail_lines=tail
            )
        ]
        return b"".join(chunks).decode(errors="replace")

    async def exec(
        self,
        pod: Reference,
        *command: str,
        container: str = "",
        stdin: str | bytes | None = None,
        timeout: float = 60.0,
    ) -> ExecResult:
        """Run a command in a container, by default the Pod's first. Raises LastcallError after `timeout` seconds."""
        obj = await self._pod(pod)
        self._link.allow("exec", namespace_of(obj))
        path = PODS.path(namespace_of(obj), name_of(obj), "exec")
        given = stdin.encode() if isinstance(stdin, str) else stdin
        try:
            async with asyncio.timeout(timeout):
                return await run_command(self._objects.client, path, command, container or _first(obj), given)
        except TimeoutError:
            raise LastcallError(f"{' '.join(command)!r} still runs after {timeout:g} s") from None

    @asynccontextmanager
    async def port_forward(self, pod: Reference, port: int) -> AsyncIterator[str]:
        """Give `http://127.0.0.1:<port>`, which leads to a Pod's port past every Service, until the block ends."""
        obj = await self._pod(pod)
        path = PODS.path(namespace_of(obj), name_of(obj), "portforward")
        async with forwarded(self._objects.client, path, port) as (host, number):
            yield f"http://{host}:{number}"

    async def url(self, target: str, *, timeout: float = REACH_SECONDS) -> str:
        """Return `http://127.0.0.1:<port>`: the service proxy carries its connections to `svc/web:80` (or
        `pod/web:8080`) as long as the cluster lives, as for `up --publish`. Returns when one is taken; raises NotReady
        after `timeout` seconds, 0 for not waiting."""
        host, port = await self._address(target)
        if timeout:
            await until_reachable((host, port), target, self._objects.clock, timeout)
        return f"http://{host}:{port}"

    async def _address(self, target: str) -> tuple[str, int]:
        kind, _, rest = target.partition("/")
        if rest.count("/") == 0 and rest:
            target = f"{kind}/{self._namespace}/{rest}"
        return await self._link.publish(target)

    async def _pod(self, reference: Reference) -> Object:
        named, obj = await self._existing(reference)
        if named.resource == PODS:
            return obj
        pods = await pods_below(self._objects, [(named, obj)])
        if not pods:
            raise LastcallError(f"{named} has no Pods")
        return pods[0]

    # -- for a report --------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return Pods, Warning Events and the last lines of each container of the namespace, for debugging."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.testing.dump import dump

        return await dump(self._objects, self._namespace)

    async def events(self) -> ObjectList:
        """Return the namespace's Events."""
        return (await self._objects.client.list(EVENTS, self._namespace)).items


async def what_holds(client: Client, named: Named, obj: Object) -> HeldObject:
    """Return what an object waits for that was to be deleted, and what ends that safely."""
    # late: pytest imports the plugin in every run, with a cluster or without
    from lastcall.experiment.reasons import wait_on

    wait = await wait_on(client, obj, named.resource.kind)
    finalizers = tuple(map(str, obj["metadata"].get("finalizers") or ()))
    ending = f"{named} is ending" if "deletionTimestamp" in obj["metadata"] else str(named)
    return HeldObject(str(named), finalizers, wait.what if wait else ending, wait.ends if wait else "")


def _is_gone(uid: str, obj: Object | None) -> bool:
    return obj is None or uid_of(obj) != uid


def _first(pod: Object) -> str:
    name: str = pod["spec"]["containers"][0]["name"]
    return pod["metadata"].get("annotations", {}).get("kubectl.kubernetes.io/default-container") or name


def _grace_of(pod: Object, grace: int | None) -> int:
    own = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return grace if grace is not None else GRACE_SECONDS if own is None else int(own)
