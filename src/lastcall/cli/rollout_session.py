"""One experiment of `lastcall rollout`: apply, wait, control period, disrupt under load, account."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.api.resources import DAEMONSETS, NODES, PODS, SERVICES
from lastcall.cli.apply import apply_manifests
from lastcall.cli.errors import UserError, WorldError
from lastcall.cli.manifests import Manifest
from lastcall.cli.rollout_balancer import Balancer
from lastcall.cli.rollout_result import Result
from lastcall.cli.rollout_target import Target
from lastcall.cli.rollout_waiting import LOOK_SECONDS, Waiting
from lastcall.client.api import STRATEGIC_MERGE_PATCH, ConnectionLost
from lastcall.cluster.layout import layouts
from lastcall.timeline import kinds
from lastcall.timeline.record import Record
from lastcall.traffic.account import account, answered_unseen, ids_printed
from lastcall.traffic.advice import judge
from lastcall.traffic.container_runs import serving_containers
from lastcall.traffic.generator import Load
from lastcall.traffic.lives import pod_lives
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

CLIENT_POD = "lastcall-client"
FIRST_NODE = layouts(1)[0].name
_LAST_OUTPUT_SECONDS = 5.0
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


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
