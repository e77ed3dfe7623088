"""A whole cluster in virtual time: API server, controllers, scheduler and kubelet are the real ones.

    async def scenario(cluster):
        await cluster.create(MANIFEST)
        await cluster.wait_ready("p")
        await cluster.delete("pod/p")
        await cluster.wait_gone("p")

    run_cluster(scenario, {"app": Program(drain_seconds=2)})

What is not real is what `lastcall.world.virtual` forbids: the store is in memory, clients are in process, containers
are `Program`s, volumes take no space and the dialer reaches simulated ports. The composition mirrors
`lastcall.kube.cluster.control_plane` and `lastcall.kube.cluster.node`.
"""

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import yaml
from japanese import untold
from published_schema import misfits
from scenario.facts import endpoint_states, event_line, pod_facts
from scenario.rights import RightsNoted
from virtual_node import ALLOCATABLE, VirtualNode
from waiting import until

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import feature_gates as gates_of
from lastcall.kube.api.features.releases import DEFAULT_VERSION
from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import (
    BINDINGS,
    CONFIGMAPS,
    CONVERTED,
    ENDPOINTSLICES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SERVED,
    SERVICEACCOUNTS,
    Resource,
)
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.pki import new_key_pem
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import MERGE_PATCH, Client
from lastcall.kube.cluster.node_capacity import parse_node_capacity
from lastcall.kube.cluster.virtual.tree import component_user
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.controllers.volumes.storage_class import STANDARD_CLASS, SimulatedDirectories
from lastcall.kube.cri.simulated import Durations
from lastcall.kube.node.capacity import allocatable_of
from lastcall.kube.node.kubelet import Kubelet
from lastcall.kube.scheduler.scheduler import run_scheduler
from lastcall.kube.store.memory import MemoryStore
from lastcall.records import kinds
from lastcall.records.memory import MemoryRecorder
from lastcall.records.record import Record
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

KINDS = {resource.kind: resource for resource in SERVED if resource not in (BINDINGS, *CONVERTED)}
WATCHED = (PODS, ENDPOINTSLICES, EVENTS)

RECORDS_CHECKED = 3000
"""How many records of a scenario are compared with the catalogue, the first ones."""

Wrap = Callable[[Client, str], Client]
"""`wrap(client, component)` puts something between a component and the API server."""


@functools.cache
def _signing_key() -> bytes:
    return new_key_pem()  # made once for all clusters of a process; nothing a scenario sees depends on it


class _Noticed(list[Any]):
    """A list that says when something is added."""

    def __init__(self, notice: Callable[[], None]) -> None:
        super().__init__()
        self._notice = notice

    def append(self, item: Any) -> None:
        super().append(item)
        self._notice()


@dataclass(frozen=True)
class Seen:
    """One watch event that a client saw. `at` is virtual seconds since the cluster's beginning."""

    at: float
    type: str
    object: Object

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def namespace(self) -> str:
        return namespace_of(self.object)


class VirtualCluster:
    """`async with VirtualCluster(world, programs) as cluster:`; all times are virtual seconds since its beginning.

    Pods are named by their name; a name used again is `p~2`, then `p~3`. `namespace` is where manifests without one go.
    `nodes` nodes are called `node-1`, `node-2`, …; `allocatable` changes what they have, `node_labels(name)` adds.
    `node_capacity` is what several `--node-capacity` say.
    What the cluster has of one node (`runtime`, `kubelet`, …) is the first one's; `cluster.nodes[name]` are all.
    `history` keeps what a client saw of WATCHED and of `watched`.

    With `own_rights` each controller is its own ServiceAccount with the rights of Kubernetes's default roles, and the
    cluster does not end well when one of them asked for more.
    """

    own_rights: ClassVar[bool] = False

    def __init__(
        self,
        world: World,
        programs: Any = None,
        *,
        kubernetes_version: str = DEFAULT_VERSION,
        images: Any = None,
        durations: Durations | None = None,
        node_name: str = "node-1",
        nodes: int = 1,
        allocatable: Mapping[str, str] | None = None,
        node_capacity: Sequence[str] = (),
        node_labels: Callable[[str], Mapping[str, str]] | None = None,
        namespace: str = "default",
        wrap: Wrap | None = None,
        kubelet: Mapping[str, Any] | None = None,
        kubelet_config: Mapping[str, Any] | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        watched: Sequence[Resource] = (),
    ) -> None:
        self.world = world
        self.version = kubernetes_version
        self._gates = dict(feature_gates or {})
        self.node_name = node_name
        self.namespace = namespace
        self._wrap: Wrap = wrap or (lambda client, component: client)
        self.rights_missed: set[str] = set()
        self._changed = asyncio.Event()
        self.all_records: list[Record] = _Noticed(self._changed.set)
        self.recorder = MemoryRecorder("apiserver", world.clock, records=self.all_records)
        self.history: dict[Resource, list[Seen]] = {resource: [] for resource in (*WATCHED, *watched)}
        self._uids: dict[str, list[str]] = {}
        self._versions: dict[str, list[Seen]] = {}
        self.server = APIServer(
            world=world,
            store=MemoryStore(),
            recorder=self.recorder,
            config=APIServerConfig(
                kubernetes_version=kubernetes_version,
                service_account_key_pem=_signing_key(),
                root_ca_pem=b"CA",
                feature_gates=feature_gates or {},
                storage_classes=(STANDARD_CLASS,),
                components=self.own_rights,
            ),
        )
        self.directories = SimulatedDirectories()
        self.client = self._client_of("kubernetes-admin", wrapped=False)
        self.nodes: dict[str, VirtualNode] = {}
        sizes = parse_node_capacity(node_capacity)

        def make_node(number: int, declared: Mapping[str, str]) -> VirtualNode:
            name = node_name if number == 1 else f"node-{number}"
            has = {**ALLOCATABLE, **(allocatable or {})}
            return VirtualNode(
                world,
                number,
                name,
                tasks=lambda: self._tasks,
                client_of=self._client_of,
                recorder=self.recorder,
                programs=programs if programs is not None else {},
                images=images,
                durations=durations,
                kubernetes_version=kubernetes_version,
                capacity={**has, **declared},
                allocatable=allocatable_of({**has, **declared}) if declared else has,
                labels=node_labels(name) if node_labels is not None else None,
                kubelet=kubelet,
                kubelet_config={"feature_gates": feature_gates or {}, **(kubelet_config or {})},
            )

        self.make_node = make_node
        for number in range(1, nodes + 1):
            made = make_node(number, sizes.of(node_name if number == 1 else f"node-{number}"))
            self.nodes[made.name] = made
        self.first = self.nodes[node_name]
        self.runtime, self.dialer, self.volumes = self.first.runtime, self.first.dialer, self.first.volumes

    @property
    def kubelet(self) -> Kubelet:
        """The first node's."""
        return self.first.kubelet

    # -- life

    async def __aenter__(self) -> Self:
        self._tasks = Tasks()
        await self._tasks.__aenter__()
        for node in self.nodes.values():
            await node.runtime.__aenter__()
        await self.server.bootstrap()
        for resource in self.history:
            self._tasks.spawn(self._follow(resource), name=f"follow {resource.plural}")
        self.start_manager()
        self._tasks.spawn(
            run_scheduler(
                world=self.world,
                client=self._client_of("kube-scheduler"),
                recorder=self.recorder.for_actor("scheduler"),
                minor=gates_of(self.version, self._gates).minor,
            ),
            name="scheduler",
        )
        for name in self.nodes:
            self.start_kubelet(name)
        if self.namespace != "default":
            await self.client.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        await self.wait_until_async(self._is_usable)
        return self

    async def _is_usable(self) -> bool:
        try:
            await self.client.get(SERVICEACCOUNTS, "default", self.namespace)
            await self.client.get(CONFIGMAPS, "kube-root-ca.crt", self.namespace)
            found = [await self.client.get(NODES, name) for name in self.nodes]
        except StatusError:
            return False
        return all(is_node_ready(node) for node in found)

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._tasks.cancel()
        for node in self.nodes.values():
            await node.runtime.__aexit__(None, None, None)
        if isinstance(error, asyncio.CancelledError):  # a component ended: its exception is the story
            await self._tasks.__aexit__(kind, error, traceback)
        else:
            await self._tasks.__aexit__(None, None, None)
        if error is None:
            checked = self.all_records[:RECORDS_CHECKED]
            found = {each for record in checked for each in misfits(record)}
            english = {each for record in checked if (each := untold(record))}
            assert not self.rights_missed, f"rights that Kubernetes does not give: {sorted(self.rights_missed)}"
            assert not found, f"records are not as the catalogue says: {sorted(found)}"
            assert not english, f"lines of records are not told in Japanese: {sorted(english)}"

    def start_manager(self) -> None:
        """Start the controllers' process; after `kill_manager` a new one that knows nothing, with a new client."""
        controllers = run_controllers(
            world=self.world,
            client=self._client_of("kube-controller-manager"),
            recorder_for=self.recorder.for_actor,
            root_ca_pem=b"CA",
            volume_directories=self.directories,
            openapi=self.server.openapi_document,
            client_of=self._client_of_account if self.own_rights else None,
            gates=gates_of(self.version, self._gates),
            fetch=self.server.fetch,
        )
        self._manager = self._tasks.spawn(controllers, name="controllers")

    async def kill_manager(self) -> None:
        """As `kill -9`, if the client that it got from `wrap` says nothing more to anybody."""
        self._manager.cancel()
        while not self._manager.done():
            await self.world.clock.sleep(0.001)

    async def add_node(self) -> str:
        """Add a node to the running cluster; its name, once it is Ready."""
        made = self.make_node(len(self.nodes) + 1, {})
        self.nodes[made.name] = made
        await made.runtime.__aenter__()
        self.start_kubelet(made.name)
        await self.wait_until_async(self._is_usable)
        return made.name

    def start_kubelet(self, node: str = "") -> None:
        """Start the node's process; after `kill_kubelet` a new one that knows nothing."""
        self.nodes[node or self.node_name].start_kubelet()

    async def kill_kubelet(self, node: str = "") -> None:
        """As `kill -9`: what it was doing is cut off, its execs end, containers go on. A node that is lost, too."""
        await self.nodes[node or self.node_name].kill_kubelet()

    def _client_of_account(self, account: str) -> Client:
        groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated")
        user = UserInfo(f"system:serviceaccount:kube-system:{account}", groups)
        client = self._wrap(self.server.client(user, "kube-controller-manager"), "kube-controller-manager")
        return RightsNoted(client, self.rights_missed)

    def _client_of(self, component: str, *, wrapped: bool = True) -> Client:
        client = self.server.client(
            component_user(component), "lastcall" if component == "kubernetes-admin" else component
        )
        return self._wrap(client, component) if wrapped else client

    async def _follow(self, resource: Resource) -> None:
        async with self.client.watch(resource) as events:
            async for event in events:
                if resource is PODS and event.type == "ADDED":
                    key = f"{namespace_of(event.object)}/{name_of(event.object)}"
                    self._uids.setdefault(key, []).append(uid_of(event.object))
                seen = Seen(self.now, event.type, event.object)
                self.history[resource].append(seen)
                if resource is PODS:
                    self._versions.setdefault(uid_of(event.object), []).append(seen)
                self._changed.set()

    # -- what a user does

    @property
    def now(self) -> float:
        return self.world.clock.monotonic_ns() / 1e9

    async def sleep(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    async def create(self, *manifests: Object | str) -> list[Object]:
        """Create objects given as dicts or as YAML texts of any number of documents; answers what was stored."""
        created = []
        for manifest in manifests:
            documents = yaml.safe_load_all(manifest) if isinstance(manifest, str) else [manifest]
            for document in documents:
                if document is None:
                    continue
                resource = KINDS[document["kind"]]
                namespace = document["metadata"].get("namespace", self.namespace) if resource.namespaced else ""
                created.append(await self.client.create(resource, document, namespace))
        return created

    async def delete(self, what: str = "pod/p", grace: int | None = None, propagation: str | None = None) -> Object:
        """DELETE `kind/name`; `grace` is gracePeriodSeconds, `propagation` propagationPolicy."""
        resource, name, namespace = self._locate(what)
        return await self.client.delete(
            resource, name, namespace, grace_period_seconds=grace, propagation_policy=propagation
        )

    async def patch(self, what: str, body: Any, *, content_type: str = MERGE_PATCH, subresource: str = "") -> Object:
        resource, name, namespace = self._locate(what)
        return await self.client.patch(
            resource, name, body, namespace, content_type=content_type, subresource=subresource
        )

    def _locate(self, what: str) -> tuple[Resource, str, str]:
        kind, name = what.split("/")
        resource = next(resource for known, resource in KINDS.items() if known.lower() == kind.lower())
        return resource, name, self.namespace if resource.namespaced else ""

    # -- waiting

    async def wait_until(self, predicate: Callable[[], Any], limit: float = 600.0) -> Any:
        """Return the first true answer of `predicate`, asked again after every record and watch event.

        AssertionError when that takes more than `limit` seconds.
        """
        try:
            async with asyncio.timeout(limit):
                while True:
                    self._changed.clear()
                    if answer := predicate():
                        return answer
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {limit:g} s; the last records:\n{self.tail()}") from None

    async def wait_until_async(self, ask: Callable[[], Awaitable[bool]], limit: float = 60.0) -> None:
        """As `wait_until`, for a question to the API server; asked every 10 ms."""
        await until(ask, seconds=limit)

    async def wait_ready(self, *pods: str, limit: float = 600.0) -> None:
        for pod in pods or ("p",):
            await self.wait_until(functools.partial(self._is_ready, pod), limit)

    def _is_ready(self, pod: str) -> bool:
        return self.condition(pod, "Ready") == "True"

    async def wait_phase(self, pod: str, phase: str, limit: float = 600.0) -> None:
        await self.wait_until(lambda: self.status(pod).get("phase") == phase, limit)

    async def wait_gone(self, *pods: str, limit: float = 600.0) -> None:
        """Until a client has seen DELETED and the kubelet has nothing left to do about the Pod."""
        for pod in pods or ("p",):
            await self.wait_until(functools.partial(self.is_gone, pod), limit)

    def tail(self, count: int = 25) -> str:
        return "\n".join(self.line(record) for record in self.all_records[-count:])

    def line(self, record: Record) -> str:
        return f"{record.at_ns / 1e9:9.3f} {record.actor:12} {record.kind:20} {record.container:8} {record.facts}"

    # -- what was seen

    def uid(self, pod: str) -> str:
        name, _, number = pod.partition("~")
        return self._uids.get(f"{self.namespace}/{name}", [])[int(number or 1) - 1]

    def versions(self, pod: str = "p") -> list[Seen]:
        """Every version of the Pod, as a watching client saw it."""
        try:
            uid = self.uid(pod)
        except IndexError:
            return []
        return self._versions.get(uid, [])

    def last_of_each_pod(self) -> list[Seen]:
        """The last version of every Pod that is not gone."""
        return [versions[-1] for versions in self._versions.values() if versions[-1].type != "DELETED"]

    def pod(self, pod: str = "p") -> Object:
        """The last version, also of a Pod that is gone; {} before there is one."""
        versions = self.versions(pod)
        return versions[-1].object if versions else {}

    def status(self, pod: str = "p") -> Object:
        return self.pod(pod).get("status") or {}

    def container_status(self, container: str = "app", pod: str = "p") -> Object:
        status = self.status(pod)
        every = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
        return next((each for each in every if each["name"] == container), {})

    def condition(self, pod: str, type_: str) -> str | None:
        found = (c["status"] for c in self.status(pod).get("conditions") or [] if c["type"] == type_)
        return next(found, None)

    def is_gone(self, pod: str = "p") -> bool:
        versions = self.versions(pod)
        return bool(versions) and versions[-1].type == "DELETED"

    def gone_at(self, pod: str = "p") -> float:
        assert self.is_gone(pod)
        return self.versions(pod)[-1].at

    def records(self, kind: str = "", container: str = "", pod: str = "") -> list[Record]:
        """Records in the order of writing, filtered by what is given."""
        uid = self.uid(pod) if pod else ""
        return [
            record
            for record in self.all_records
            if kind in ("", record.kind) and container in ("", record.container) and uid in ("", record.pod_uid)
        ]

    def kinds(self, *wanted: str, pod: str = "") -> list[str]:
        """The order of the records of the given kinds."""
        return [record.kind for record in self.records(pod=pod) if record.kind in wanted]

    def at(self, kind: str, container: str = "", pod: str = "", nth: int = 0) -> float:
        """When the `nth` record of a kind was written."""
        return self.records(kind, container, pod)[nth].at_ns / 1e9

    def since_killing(self, record: Record) -> float:
        """Seconds from the container's latest Killing event (the kubelet's T0) to the record."""
        killing = [
            other
            for other in self.all_records
            if other.kind == kinds.KILLING
            and other.pod_uid == record.pod_uid
            and other.container == record.container
            and other.at_ns <= record.at_ns
        ]
        assert killing, f"no Killing before {record}"
        return (record.at_ns - killing[-1].at_ns) / 1e9

    def signals(self, container: str = "app", pod: str = "") -> list[tuple[float, str]]:
        """(seconds since Killing, signal) of every signal sent to the container."""
        return [(self.since_killing(r), r.facts["signal"]) for r in self.records(kinds.SIGNAL_SENT, container, pod)]

    def exits(self, container: str = "app", pod: str = "") -> list[tuple[float, int]]:
        """(seconds since Killing, exit code) of every end of the container after a Killing."""
        ended = self.records(kinds.PROCESS_EXITED, container, pod)
        return [(self.since_killing(r), r.facts["exitCode"]) for r in ended]

    def output(self, container: str = "app", pod: str = "", attempt: int = 0) -> list[str]:
        lines = self.records(kinds.OUTPUT, container, pod)
        return [record.facts["text"] for record in lines if record.facts["attempt"] == attempt]

    def event_objects(self, pod: str = "p") -> list[Object]:
        """The Events about the Pod in the order of their first occurrence, each in its last version."""
        uid = self.uid(pod)
        found: dict[str, Object] = {}
        for seen in self.history[EVENTS]:
            about = seen.object["involvedObject"]
            # The taint eviction controller speaks about a name.
            is_about = about.get("uid") == uid or ("uid" not in about and about["name"] == pod)
            if is_about and seen.type != "DELETED":
                found[seen.name] = seen.object
        return list(found.values())

    def events(self, pod: str = "p") -> list[str]:
        """`Normal Killing [containers{app}]: Stopping container app`, with ` (xN)` for a count above 1."""
        return [event_line(event) for event in self.event_objects(pod)]

    def event_times(self, reason: str, pod: str = "p") -> list[float]:
        """When Events with this reason about the Pod were written, counts included."""
        uid = self.uid(pod)
        return [
            seen.at
            for seen in self.history[EVENTS]
            if seen.object["involvedObject"].get("uid") == uid and seen.object["reason"] == reason
        ]

    def milestones(self, pod: str = "p") -> list[list[str]]:
        """What every write changed of the facts that the recordings name."""
        before: dict[str, str] = {}
        groups: list[list[str]] = []
        for seen in self.versions(pod):
            if seen.type == "DELETED":
                groups.append(["DELETED"])
                continue
            facts = pod_facts(seen.object)
            group = [text for key, text in facts.items() if before.get(key) != text]
            group += [f"{key} removed" for key in before if key not in facts and key != "podIP"]
            if group:
                groups.append(group)
            before = facts
        return groups

    def endpoints(self, service: str) -> list[list[str]]:
        """The states the Service's EndpointSlice went through: `p ready=true serving=true terminating=false`."""
        states: list[list[str]] = []
        for seen in self.history[ENDPOINTSLICES]:
            labels = seen.object["metadata"].get("labels") or {}
            if labels.get("kubernetes.io/service-name") != service or seen.type == "DELETED":
                continue
            state = endpoint_states(seen.object, self.alias)
            if not states or states[-1] != state:
                states.append(state)
        return states

    def alias(self, uid: str) -> str:
        """`p`, or `p~2` for the second Pod of the name."""
        for key, uids in self._uids.items():
            if uid in uids:
                number = uids.index(uid) + 1
                name = key.split("/", 1)[1]
                return name if number == 1 else f"{name}~{number}"
        return uid

    def serialised(self) -> bytes:
        """Everything a run wrote, as bytes that two equal runs have in common."""
        lines = [json.dumps(asdict(record), sort_keys=True) for record in self.all_records]
        for resource, events in self.history.items():
            for seen in events:
                shown = [resource.plural, seen.at, seen.type, seen.object]
                lines.append(json.dumps(shown, sort_keys=True))
        return "\n".join(lines).encode()


def is_node_ready(node: Object) -> bool:
    """Ready, and the controller has taken note: its taints are gone."""
    conditions = node["status"].get("conditions") or []
    ready = any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)
    return ready and not any(t["key"] == "node.kubernetes.io/not-ready" for t in node["spec"].get("taints") or [])


def run_cluster(
    scenario: Callable[[VirtualCluster], Awaitable[Any]],
    programs: Any = None,
    *,
    seed: int = 0,
    **options: Any,
) -> VirtualCluster:
    """Run `scenario(cluster)` in a fresh virtual world; answers the cluster, whose records can be looked at."""

    async def main(world: World) -> VirtualCluster:
        async with VirtualCluster(world, programs, **options) as cluster:
            await scenario(cluster)
            # Events are written behind the components' backs: let the last ones arrive.
            await cluster.sleep(0.5)
        return cluster

    return run_virtual(main, seed=seed)


def pod_manifest(name: str = "p", *, containers: Sequence[Object] = (), **spec: Any) -> Object:
    """A Pod with label `app: <name>`; without containers it has one, `app`."""
    metadata: Object = {"name": name, "labels": spec.pop("labels", {"app": name})}
    for key in ("annotations", "finalizers"):
        if key in spec:
            metadata[key] = spec.pop(key)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "automountServiceAccountToken": False,
            "containers": list(containers) or [container()],
            **spec,
        },
    }


def container(name: str = "app", **more: Any) -> Object:
    return {"name": name, "image": "busybox:1.36", **more}


def service(name: str = "svc", **selector: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": selector or {"app": "p"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }


def pre_stop(**handler: Any) -> Object:
    """`pre_stop(exec=["sleep", "2"])`, `pre_stop(sleep=2)`, `pre_stop(httpGet={...})`."""
    if "exec" in handler:
        handler = {"exec": {"command": handler["exec"]}}
    elif "sleep" in handler:
        handler = {"sleep": {"seconds": handler["sleep"]}}
    return {"lifecycle": {"preStop": handler}}
