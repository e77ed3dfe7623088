"""One experiment of `lastcall rollout`: apply, wait, control period, disrupt under load, account."""

# check: long functions RolloutSession._run because it waits for the one session of all commands

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lastcall.errors import WorldError
from lastcall.experiment.not_simulated import of_balance, of_images, of_load, of_manifests, of_stranded
from lastcall.experiment.rollout.advice import checked_by_server
from lastcall.experiment.rollout.balancer import Balancer
from lastcall.experiment.rollout.disruption import Disruption
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.target import (
    Target,
    check_target_port,
    is_headless,
    never_heard,
    sent_to_strangers,
    serving_container,
)
from lastcall.experiment.rollout.waiting import LOOK_SECONDS, Waiting
from lastcall.experiment.rollout.workload import labels_of, others_of, told_as
from lastcall.kube.api import PODS, SERVICES, Object, name_of, namespace_of, uid_of
from lastcall.kube.client import ConnectionLost
from lastcall.kube.cluster import Running, layouts
from lastcall.manifests import Manifest, apply_manifests
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.said import tell
from lastcall.traffic import (
    Account,
    Control,
    Judgement,
    Load,
    Outcome,
    PodLife,
    account,
    answered_unseen,
    asks_the_application,
    ids_printed,
    judge,
    pod_lives,
    serving_containers,
)
from lastcall.world.clock import Clock, monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions
    from lastcall.experiment.rollout.published import Carried
    from lastcall.kube.cluster import VirtualRolloutCluster
    from lastcall.traffic import LoadClient, VirtualLoad

CLIENT_POD = "lastcall-client"
FIRST_NODE = layouts(1)[0].name
_LAST_OUTPUT_SECONDS = 5.0


@dataclass(slots=True)
class RolloutSession:
    """`run` once, on a cluster that was started with a load generator. `say` gets how far it is, `show` what
    is waited for: now, the seconds so far, and the words."""

    cluster: "Running | VirtualRolloutCluster[VirtualLoad]"
    options: "RolloutOptions"
    target: Target
    world: World = field(default_factory=World)
    say: Callable[[str], None] = lambda text: None
    show: Callable[[float, float, str], None] = lambda now, waited, text: None
    before_load: Callable[[], Awaitable[None]] | None = None
    """Awaited when all is Ready, before the first request."""
    began: float | None = None
    """The moment of the disruption, by the monotonic clock."""
    foreign: set[str] = field(default_factory=set)
    """The uids of Pods of other workloads."""
    records: list[Record] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    _death: str = ""
    _died: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def clock(self) -> Clock:
        return self.world.clock

    def is_dead(self) -> bool:
        """Whether a process of the cluster has died."""
        return bool(self._death)

    def _make_waiting(self, workload: Manifest) -> Waiting:
        return Waiting(
            client=lambda: self.cluster.client,
            clock=self.clock,
            workload=workload,
            records=self.records,
            limit=self.options.timeout,
            show=self.show,
            died=self._died,
            death=lambda: self._death,
            version=self.options.kubernetes_version,
        )

    async def run(self, manifests: Sequence[Manifest]) -> Result:
        """Raises UserError, WorldError, ClusterStartError."""
        self.cluster.on_record(self.records.append)
        self.cluster.on_process_died(self._process_died)
        await self.cluster.connect()
        try:
            return await self._run(manifests)
        except Exception as error:
            # What happened first in a task group is what happened.
            first = error
            while isinstance(first, ExceptionGroup):
                first = first.exceptions[0]
            if isinstance(first, ConnectionLost):
                raise WorldError(self._death or f"the API server cannot be reached: {first}") from error
            raise first from error.__cause__
        finally:
            with suppress(ConnectionLost, OSError):
                await self.cluster.client.close()

    async def _run(self, manifests: Sequence[Manifest]) -> Result:  # noqa: C901, PLR0915 - see the marker
        client = self.cluster.client
        await self.cluster.wait_node_ready()
        applied, _ = await apply_manifests(client, self.clock, manifests)
        created = {(each.resource, namespace_of(each.obj), name_of(each.obj)): each.obj for each in applied}
        target, workload = self.target, self.target.workload
        others = others_of(manifests, workload)
        service = created[SERVICES, namespace_of(target.service.obj), name_of(target.service.obj)]
        owner = created[workload.resource, namespace_of(workload.obj), name_of(workload.obj)]
        plan = self.options.propagation
        if plan.most > plan.most_to(self.options.source) == 0:
            other = "--from balancer" if self.options.source != "balancer" else "--from node"
            self.say(
                tell(
                    "note: --propagation $plan delays nothing for these requests; $option sends others",
                    plan=plan.text,
                    option=other,
                )
            )
        if others and not self.options.workload:
            self.say(
                tell(
                    "note: of several workloads $workload is the one behind the Service (--workload chooses)",
                    workload=told_as(workload),
                )
            )
        self.say(
            tell(
                "Kubernetes $version is up; waiting for $workload to be Ready",
                version=self.options.kubernetes_version,
                workload=told_as(workload),
            )
        )
        waiting = self._make_waiting(workload)
        await waiting.until(waiting.settled, "Pods to become available")
        for each in others:
            of_it = self._make_waiting(each)
            await of_it.until(of_it.settled, f"Pods of {told_as(each)} to become available")
        check_target_port(self.target, name_of(service))
        if not is_headless(service):  # no rule leads to those
            await waiting.until(waiting.routed, "the node's rules to name every Pod")
        disruption = self._disruption()
        if self.before_load is not None:
            await self.before_load()
        async with AsyncExitStack() as stack, Tasks() as tasks:
            address, carried = await self._address(service, waiting), None
            if self.options.source == "published":
                address, carried = await stack.enter_async_context(self._published(service))
            load = await self._load(namespace_of(service))
            stack.callback(load.close)
            load.start(self._load_of(service, address))
            if is_headless(service):
                load.targets([address])
            balancer = self._balancer(service, load)
            balancing = tasks.spawn(balancer.run(), name="balancer") if balancer is not None else None
            collecting = tasks.spawn(self._collect(load), name="outcomes")
            control = f"{self.options.control:g}"
            self.say(tell("Ready; $seconds s of requests before anything is disrupted", seconds=control))
            self.foreign = foreign = await self._pods_of(others)
            strangers = await self._strangers(service, await waiting.pods(), others)
            unheard, stranded = await self._control(owner, strangers), list[Object]()
            began = monotonic(self.clock)
            if unheard is None:
                self.began = began
                self.say(tell("$disruption begins", disruption=self.options.disrupt))
                await disruption.begin(await waiting.pods())
                drained = self.options.disrupt == "drain"
                what = f"the {self.options.disrupt} to be over"
                stranded = await waiting.until(waiting.over, what, may_strand=drained)
            seconds = monotonic(self.clock) - began
            if unheard is None:
                what = self.options.disrupt
                if disruption.node:
                    what = tell("$disruption of $node", disruption=what, node=disruption.node)
                self.say(tell("$disruption is over; the last requests", disruption=what))
                await self.clock.sleep(self.options.propagation.most + self.options.settle)
            load.stop()
            await collecting
            if balancing is not None:
                balancing.cancel()
        if carried is not None:
            self.outcomes[:] = [carried.completed(each) for each in self.outcomes]
        if unheard is None:
            await self._read_to_the_end()
        template = owner["spec"]["template"]["spec"]
        lives = pod_lives(self.records, *serving_containers(template, self.target.container_port))
        foreign |= await self._pods_of(others)
        lives = [life for life in lives if life.uid not in foreign]
        if balancer is not None:
            balancer.note(lives)
        output, whole = self._output()
        # Nothing was disrupted where nobody was heard: then all of it is the control period's.
        moment = began if unheard is None else math.inf
        found = account(self.outcomes, lives, output, moment, begun=load.begun, whole_output=whole)
        judgement = unheard
        if judgement is None:
            judgement = await checked_by_server(
                client, self._judge(found, lives, owner), owner, self.target.workload.resource
            )
        changed = [life.unrouted.latest for life in lives if life.unrouted is not None]
        return Result(
            account=found,
            judgement=judgement,
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
            over=max([began + seconds, *changed]),
            node=disruption.node,
            nodes=self.options.nodes,
            unheard=unheard is not None,
            notes=(
                *self.options.differences,
                *of_manifests(manifests),
                *of_images(self.records),
                *of_load(self.outcomes),
                *of_balance(found),
                *of_stranded(stranded, disruption.node),
            ),
        )

    async def _address(self, service: Object, waiting: Waiting) -> tuple[str, int]:
        """Where the first requests go: to the Service, or, because it has no address, to a Pod of a headless one."""
        if not is_headless(service):
            return service["spec"]["clusterIP"], self.target.port["port"]
        template = self.target.workload.obj["spec"]["template"]["spec"]
        number, _ = serving_containers(template, self.target.container_port)
        pod = sorted(await waiting.pods(), key=name_of)[0]
        return pod["status"]["podIP"], number or self.target.port["port"]

    def _load_of(self, service: Object, address: tuple[str, int]) -> Load:
        host = f"{name_of(service)}.{namespace_of(service)}.svc.cluster.local"
        return replace(self.options.load, target=address, host=host)

    def _disruption(self) -> Disruption:
        return Disruption(
            client=self.cluster.client,
            clock=self.clock,
            workload=self.target.workload,
            how=self.options.disrupt,
            timeout=self.options.timeout,
            waiting=lambda waited, text: self.show(monotonic(self.clock), waited, text),
        )

    async def _pods_of(self, others: Sequence[Manifest]) -> set[str]:
        """The uids of their Pods."""
        return {uid_of(pod) for each in others for pod in await self._make_waiting(each).pods()}

    async def _strangers(
        self, service: Object, own: Sequence[Object], others: Sequence[Manifest]
    ) -> dict[str, list[Manifest]]:
        """Addresses of Pods that the Service selects and that are not the workload's, with what they are of."""
        selector = service["spec"].get("selector") or {}
        selecting = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        listed = await self.cluster.client.list(PODS, namespace_of(service), label_selector=selecting)
        known, found = {uid_of(pod) for pod in own}, dict[str, list[Manifest]]()
        for pod in listed.items:
            address, labels = (pod.get("status") or {}).get("podIP"), pod["metadata"].get("labels") or {}
            if address and uid_of(pod) not in known:
                found[address] = [each for each in others if labels_of(each).items() <= labels.items()]
        return found

    async def _control(self, owner: Object, strangers: Mapping[str, Sequence[Manifest]]) -> Judgement | None:
        """Requests before anything is disrupted. None when they have shown enough, else why they never will."""
        container = serving_container(owner["spec"]["template"]["spec"], self.target.container_port)
        probed = asks_the_application(container)
        control = Control(monotonic(self.clock), self.options.control, probed)
        await self.clock.sleep(self.options.control)
        while (decision := control.decide(self.outcomes, at := monotonic(self.clock))) == "wait":
            if self._died.is_set():
                raise WorldError(self._death)
            self.show(at, at - control.began, "answers: the Pods are marked Ready, and requests are still lost")
            await self.clock.sleep(LOOK_SECONDS)
        if misled := sent_to_strangers(self.outcomes, self.target, strangers):
            return misled
        if decision == "go":
            return None
        return never_heard(self.outcomes, monotonic(self.clock) - control.began, self.target, container)

    def _judge(self, found: Account, lives: Sequence[PodLife], owner: Object) -> Judgement:
        return judge(
            found,
            lives,
            owner,
            self.target.container_port,
            sleep_hooks=self.options.sleep_hooks,
            longest_lag=self.options.propagation.most_to(self.options.source),
            disrupt=self.options.disrupt,
            path=self.options.load.path,
        )

    async def _load(self, namespace: str) -> "LoadClient | VirtualLoad":
        if self.options.source == "published":
            # late: 6 ms of the start of `rollout`
            from lastcall.traffic import LoadClient

            return await LoadClient.on_host()
        load: LoadClient | VirtualLoad = await self.cluster.load()
        if self.options.source == "pod":
            load.enter(await self._client_pod(namespace))
        return load

    def _published(self, service: Object) -> "AbstractAsyncContextManager[tuple[tuple[str, int], Carried]]":
        # late: 6 ms of the start of `rollout`
        from lastcall.experiment.rollout.published import published

        assert isinstance(self.cluster, Running)  # no packet leaves virtual time
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
        node = {"nodeName": FIRST_NODE}  # the load generator's, because its connection tracking is asked
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
            pids.extend(record.told(kinds.PROCESS_STARTED)["pid"] for record in started)
            return "" if pids else "it has not started"

        await self._make_waiting(self.target.workload).until(running, f"the Pod {CLIENT_POD} to run")
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
        lines = [record.told(kinds.OUTPUT) for record in self.records if record.kind == kinds.OUTPUT]
        whole = not self.cluster.records_overwritten and not any(line.get("dropped") for line in lines)
        return [str(line.get("text")) for line in lines], whole

    def _process_died(self, role: str, pid: int, exit_code: int | None, number: int | None) -> None:
        if role == "orphan" or self._death:
            return
        if hung := self.cluster.why_it_hung(role):
            self._death = f"the cluster's {role} {hung}"
        else:
            how = f"was killed by signal {number}" if number else f"exited with {exit_code}"
            self._death = f"the cluster's {role} {how}: {self.cluster.last_words(role, 1)}"
        self._died.set()
