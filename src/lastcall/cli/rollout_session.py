"""One experiment of `lastcall rollout`: apply, wait, control period, disrupt under load, account."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.api.patch import strategic_merge_patch
from lastcall.api.resources import DAEMONSETS, DEPLOYMENTS, NODES, PODS, REPLICASETS, SERVICES, STATEFULSETS
from lastcall.cli.apply import apply_manifests
from lastcall.cli.errors import UserError, WorldError
from lastcall.cli.manifests import Manifest
from lastcall.cli.rollout_balancer import Balancer
from lastcall.cli.rollout_waiting import LOOK_SECONDS, Waiting
from lastcall.client.api import STRATEGIC_MERGE_PATCH, ConnectionLost
from lastcall.cluster.layout import layouts
from lastcall.timeline import kinds
from lastcall.timeline.record import Record
from lastcall.traffic.account import Account, account, answered_unseen, ids_printed
from lastcall.traffic.advice import Judgement, judge
from lastcall.traffic.container_runs import serving_containers
from lastcall.traffic.generator import Load
from lastcall.traffic.lives import PodLife, pod_lives
from lastcall.traffic.outcome import Outcome
from lastcall.world.clock import Clock, monotonic, now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.cli.rollout_options import RolloutOptions
    from lastcall.cli.rollout_published import Carried
    from lastcall.cluster.embedded import EmbeddedCluster
    from lastcall.cluster.load import LoadClient
    from lastcall.cluster.virtual import VirtualRolloutCluster
    from lastcall.cluster.virtual_load import VirtualLoad

WORKLOADS = (DEPLOYMENTS, STATEFULSETS, DAEMONSETS, REPLICASETS)
CLIENT_POD = "lastcall-client"
FIRST_NODE = layouts(1)[0].name
_LAST_OUTPUT_SECONDS = 5.0
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


@dataclass(frozen=True, slots=True)
class Target:
    """What is disrupted, and the port of the Service that requests go to."""

    workload: Manifest
    service: Manifest
    port: Object

    @property
    def container_port(self) -> int | str:
        port: int | str = self.port.get("targetPort") or self.port["port"]
        return port


@dataclass(frozen=True, slots=True)
class Result:
    """What one experiment found. `began` is the moment of the disruption, seconds of the monotonic clock."""

    account: Account
    judgement: Judgement
    lives: Sequence[PodLife]
    outcomes: Sequence[Outcome]
    owner: Object
    what: str
    service: str
    disrupt: str
    propagation: str
    source: str
    began: float
    seconds: float


def find_target(manifests: Sequence[Manifest], options: "RolloutOptions") -> Target:
    """The one workload and its Service. Raises UserError."""
    workloads = [each for each in manifests if each.resource in WORKLOADS]
    if len(workloads) != 1:
        found = ", ".join(f"{each.resource.kind} {name_of(each.obj)}" for each in workloads) or "none"
        raise UserError(f"the manifests must hold one Deployment, StatefulSet, DaemonSet or ReplicaSet: {found}")
    labels = workloads[0].obj["spec"]["template"]["metadata"].get("labels") or {}
    selecting = [
        each
        for each in manifests
        if each.resource == SERVICES
        and (selector := each.obj["spec"].get("selector"))
        and all(labels.get(key) == value for key, value in selector.items())
    ]
    services = [each for each in selecting if options.service in ("", name_of(each.obj))]
    if len(services) != 1:
        found = ", ".join(name_of(each.obj) for each in selecting)
        if options.service and selecting:
            raise UserError(f"--service {options.service}: the Services that select its Pods are {found}")
        what = f"{found} do: choose with --service" if selecting else "none does: add one to the manifests"
        raise UserError(f"one Service must select the Pods of {name_of(workloads[0].obj)}: {what}")
    service = services[0].obj
    offered = [port for port in service["spec"].get("ports") or [] if port.get("protocol", "TCP") == "TCP"]
    ports = [port for port in offered if options.port in ("", port.get("name"), str(port.get("port")))]
    if len(ports) != 1:
        found = ", ".join(f"{port.get('port')} {port.get('name', '')}".strip() for port in offered) or "none"
        asked = f"--port {options.port}: " if options.port else ""
        choose = "" if options.port or not offered else ": choose with --port"
        raise UserError(f"{asked}the TCP ports of Service {name_of(service)} are {found}{choose}")
    return Target(workloads[0], services[0], ports[0])


def with_advice(manifests: Sequence[Manifest], owner: Object, patch: Object) -> list[Manifest]:
    """The manifests with the patch in the workload."""
    changed = []
    for each in manifests:
        if each.resource in WORKLOADS and name_of(each.obj) == name_of(owner):
            each = replace(each, obj=strategic_merge_patch(each.resource, each.obj, patch))
        changed.append(each)
    return changed


@dataclass(slots=True)
class RolloutSession:
    """`run` once, on a cluster that was started with a load generator."""

    cluster: "EmbeddedCluster | VirtualRolloutCluster"
    options: "RolloutOptions"
    target: Target
    world: World = field(default_factory=World)
    say: Callable[[str], None] = lambda text: None
    records: list[Record] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    _death: str = ""
    _died: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def _waiting(self) -> Waiting:
        return Waiting(
            client=lambda: self.cluster.client,
            clock=self.clock,
            workload=self.target.workload,
            records=self.records,
            limit=self.options.timeout,
            say=self.say,
            died=self._died,
            death=lambda: self._death,
        )

    async def run(self, manifests: Sequence[Manifest]) -> Result:
        """Raises UserError, WorldError, ClusterStartError."""
        self.cluster.on_record(self.records.append)
        self.cluster.on_process_died(self._process_died)
        await self.cluster.connect()
        try:
            return await self._run(manifests)
        except ConnectionLost as error:
            raise WorldError(self._death or f"the API server cannot be reached: {error}") from error
        finally:
            with suppress(ConnectionLost, OSError):
                await self.cluster.client.close()

    async def _run(self, manifests: Sequence[Manifest]) -> Result:
        client = self.cluster.client
        await self.cluster.wait_node_ready()
        applied, _ = await apply_manifests(client, self.clock, manifests)
        created = {(each.resource, name_of(each.obj)): each.obj for each in applied}
        service = created[SERVICES, name_of(self.target.service.obj)]
        owner = created[self.target.workload.resource, name_of(self.target.workload.obj)]
        plan = self.options.propagation
        if plan.most > plan.most_to(self.options.source) == 0:
            other = "--from balancer" if self.options.source != "balancer" else "--from node"
            self.say(f"note: --propagation {plan.text} delays nothing for these requests; {other} sends others")
        self.say(f"Kubernetes {self.options.kubernetes_version} is up; waiting for {name_of(owner)} to be Ready")
        waiting = self._waiting
        await waiting.until(waiting.settled, "its Pods are Ready")
        await waiting.until(waiting.routed, "the node's rules name them")
        async with AsyncExitStack() as stack, Tasks() as tasks:
            address, carried = (service["spec"]["clusterIP"], self.target.port["port"]), None
            if self.options.source == "published":
                address, carried = await stack.enter_async_context(self._published(service))
            load = await self._load(namespace_of(service))
            stack.callback(load.close)
            load.start(
                Load(
                    target=address,
                    rates=self.options.rates,
                    host=f"{name_of(service)}.{namespace_of(service)}.svc.cluster.local",
                    path=self.options.path,
                    slow_path=self.options.slow_path,
                    stream_path=self.options.stream_path,
                    websocket_path=self.options.websocket_path,
                    length=self.options.length,
                    http2_connections=self.options.http2_connections,
                    timeout=self.options.request_timeout,
                )
            )
            balancer = self._balancer(service, load)
            balancing = tasks.spawn(balancer.run(), name="balancer") if balancer is not None else None
            collecting = tasks.spawn(self._collect(load), name="outcomes")
            self.say(f"Ready; {self.options.control:g} s of requests before anything is disrupted")
            await self.clock.sleep(self.options.control)
            self.say(f"{self.options.disrupt} begins")
            began = monotonic(self.clock)
            await self._disrupt()
            await waiting.until(waiting.over, "the disruption is over")
            seconds = monotonic(self.clock) - began
            self.say(f"{self.options.disrupt} is over; the last requests")
            await self.clock.sleep(self.options.propagation.most + self.options.settle)
            load.stop()
            await collecting
            if balancing is not None:
                balancing.cancel()
        if carried is not None:
            self.outcomes[:] = [carried.completed(each) for each in self.outcomes]
        await self._read_to_the_end()
        template = owner["spec"]["template"]["spec"]
        lives = pod_lives(self.records, *serving_containers(template, self.target.container_port))
        if balancer is not None:
            balancer.note(lives)
        output, whole = self._output()
        found = account(self.outcomes, lives, output, began, begun=load.begun, whole_output=whole)
        return Result(
            account=found,
            judgement=judge(
                found,
                lives,
                owner,
                self.target.container_port,
                sleep_hooks=self.options.sleep_hooks,
                longest_lag=self.options.propagation.most_to(self.options.source),
            ),
            lives=lives,
            outcomes=self.outcomes,
            owner=owner,
            what=f"{self.target.workload.resource.kind} {name_of(owner)}",
            service=name_of(service),
            disrupt=self.options.disrupt,
            propagation=self.options.propagation.text,
            source=self.options.source,
            began=began,
            seconds=seconds,
        )

    async def _load(self, namespace: str) -> "LoadClient | VirtualLoad":
        if self.options.source == "published":
            from lastcall.cluster.load import LoadClient

            return await LoadClient.on_host()
        load = await self.cluster.load()
        if self.options.source == "pod":
            load.enter(await self._client_pod(namespace))
        return load

    def _published(self, service: Object) -> "AbstractAsyncContextManager[tuple[tuple[str, int], Carried]]":
        from lastcall.cli.rollout_published import published
        from lastcall.cluster.embedded import EmbeddedCluster

        assert isinstance(self.cluster, EmbeddedCluster)  # no packet leaves virtual time
        return published(self.cluster, self.world, service, self.target.port)

    def _balancer(self, service: Object, load: "LoadClient | VirtualLoad") -> Balancer | None:
        if self.options.source != "balancer":
            return None
        delay = self.options.propagation.of("balancer")
        return Balancer(self.world, self.cluster.client, service, self.target.port, delay, load.targets)

    async def _client_pod(self, namespace: str) -> int:
        """A Pod that does nothing but to lend its network; the pid of its process, as the cluster sees it."""
        container = {"name": "client", "image": "busybox:1.36", "command": ["sleep", "86400"]}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
        node = {"nodeName": FIRST_NODE}  # the load generator's, for its connection tracking is asked
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": CLIENT_POD, "namespace": namespace},
            "spec": {**spec, **node},
        }
        made = await self.cluster.client.create(PODS, pod, namespace)
        pids: list[int] = []

        async def running() -> str:
            started = [r for r in self.records if r.kind == kinds.PROCESS_STARTED and r.pod_uid == uid_of(made)]
            pids.extend(record.facts["pid"] for record in started)
            return "" if pids else "it does not run yet"

        await self._waiting.until(running, f"the Pod {CLIENT_POD} runs")
        return pids[0]

    async def _collect(self, load: "LoadClient | VirtualLoad") -> None:
        async for outcome in load.outcomes():
            self.outcomes.append(outcome)

    async def _read_to_the_end(self) -> None:
        """What the Pods printed of answered requests may come later than the answers, on a busy machine much later."""
        await self.cluster.drain_records(0.2)
        deadline = monotonic(self.clock) + _LAST_OUTPUT_SECONDS
        while answered_unseen(self.outcomes, ids_printed(self._output()[0])) and monotonic(self.clock) < deadline:
            await self.cluster.drain_records(0.2)

    def _output(self) -> tuple[list[str], bool]:
        """What the Pods printed, and whether that is all: a shim tells only so many lines a second, and a ring holds
        only so many records for a reader that is late."""
        lines = [record for record in self.records if record.kind == kinds.OUTPUT]
        whole = not self.cluster.records_overwritten and not any(record.facts.get("dropped") for record in lines)
        return [str(record.facts.get("text")) for record in lines], whole

    # -- what is done --------------------------------------------------------------------------------------------------

    async def _disrupt(self) -> None:
        client, workload = self.cluster.client, self.target.workload
        name, namespace = name_of(workload.obj), namespace_of(workload.obj)
        pods = sorted(await self._waiting.pods(), key=name_of)
        match self.options.disrupt:
            case "rollout":
                annotations = {_RESTARTED_AT: rfc3339(now(self.clock))}
                patch: Object = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
                await client.patch(workload.resource, name, patch, namespace, content_type=STRATEGIC_MERGE_PATCH)
            case "scale-in":
                if workload.resource == DAEMONSETS:
                    raise UserError("a DaemonSet has no replicas to take away: use --disrupt rollout or delete")
                replicas = {"spec": {"replicas": max(1, len(pods) // 2)}}
                await client.patch(workload.resource, name, replicas, namespace)
            case "delete":
                await client.delete(PODS, name_of(pods[0]), namespace)
            case "evict":
                await self._evict(pods[0])
            case "drain":
                await self._drain(pods)

    async def _drain(self, pods: Sequence[Object]) -> None:
        """`kubectl drain` of the node that has the most of the Pods."""
        nodes = [str(pod["spec"].get("nodeName")) for pod in pods]
        node = max(sorted(dict.fromkeys(nodes)), key=nodes.count)
        await self.cluster.client.patch(NODES, node, {"spec": {"unschedulable": True}})
        for pod in pods:
            if pod["spec"].get("nodeName") == node:
                await self._evict(pod)

    async def _evict(self, pod: Object) -> None:
        """As kubectl does it: asked again every while that a budget says no."""
        eviction = {"metadata": {"name": name_of(pod), "namespace": namespace_of(pod)}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", **eviction}
        deadline = monotonic(self.clock) + self.options.timeout
        while True:
            try:
                await self.cluster.client.create(
                    PODS, body, namespace_of(pod), name=name_of(pod), subresource="eviction"
                )
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                if error.code != 429 or monotonic(self.clock) > deadline:
                    raise WorldError(f"{name_of(pod)} cannot be evicted: {error.message}") from error
            await self.clock.sleep(LOOK_SECONDS)

    def _process_died(self, role: str, pid: int, exit_code: int | None, number: int | None) -> None:
        if role == "orphan" or self._death:
            return
        if hung := self.cluster.why_it_hung(role):
            self._death = f"the cluster's {role} {hung}"
        else:
            how = f"was killed by signal {number}" if number else f"exited with {exit_code}"
            self._death = f"the cluster's {role} {how}: {self.cluster.last_words(role, 1)}"
        self._died.set()
