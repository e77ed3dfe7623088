"""A rollout on a cluster of our own, which was started with a load generator: its rings tell what happens."""

import math
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, ClassVar

from lastcall.endings.render import AboutCluster, about_cluster
from lastcall.experiment.embedded import EmbeddedCluster
from lastcall.experiment.load_notes import of_answers, of_balance, of_load
from lastcall.experiment.not_simulated import of_dropped, of_images, of_manifests, of_stranded
from lastcall.experiment.rollout.advice import checked_by_server, of_pods
from lastcall.experiment.rollout.balancer import Balancer
from lastcall.experiment.rollout.published import published
from lastcall.experiment.rollout.target import Target, check_target_port, is_headless, sent_to_strangers
from lastcall.experiment.rollout.workload import kubectl_name, labels_of, of_pod, others_of
from lastcall.experiment.rollout.workspace import Experiment, Observed, RolloutWorkspace, Sending
from lastcall.kube.api import PODS, SERVICES, Object, name_of, namespace_of, uid_of
from lastcall.kube.cluster import Running, layouts
from lastcall.manifests import Applied, Manifest, apply_manifests
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.said import tell
from lastcall.traffic import (
    Judgement,
    LoadClient,
    PodLife,
    account,
    answered_unseen,
    ids_printed,
    pod_lives,
    serving_containers,
)
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.experiment.rollout.published import Carried
    from lastcall.kube.cluster import VirtualRolloutCluster
    from lastcall.traffic import LoadClient, VirtualLoad

CLIENT_POD = "lastcall-client"
FIRST_NODE = layouts(1)[0].name
_LAST_OUTPUT_SECONDS = 5.0


@dataclass(slots=True)
class EmbeddedWorkspace(EmbeddedCluster, RolloutWorkspace):
    """`cluster` has as many nodes as the options say; `target` is found in `manifests`."""

    cluster: "Running | VirtualRolloutCluster[VirtualLoad]"
    manifests: Sequence[Manifest]
    target: Target
    silence: ClassVar[str] = "answers: the Pods are marked Ready, and requests are still lost"
    _others: Sequence[Manifest] = ()
    _strangers: dict[str, list[Manifest]] = field(default_factory=dict)
    _carried: "Carried | None" = None
    _balancer: Balancer | None = None

    def about(self, now: Experiment) -> AboutCluster:
        return about_cluster(now.options.kubernetes_version)

    # -- to Ready -----------------------------------------------------------------------------------------------------

    async def prepare(self, now: Experiment) -> None:
        """Apply the manifests, and wait until every workload of them is Ready."""
        await self.start(self.records.append)
        applied, _ = await apply_manifests(self.client, now.clock, self.manifests)
        self._choose(now, applied)
        self._say_what_is_chosen(now)
        there = now.of()
        await now.waiting(there).until(there.settled, "Pods to become available")
        for each in self._others:
            of_it = now.of(each)
            await now.waiting(of_it).until(of_it.settled, f"Pods of {kubectl_name(each)} to become available")
        await self._reach(now)

    async def join(self, now: Experiment, created: Sequence[Applied]) -> None:
        self._choose(now, created)
        await self._reach(now)

    def _choose(self, now: Experiment, applied: Sequence[Applied]) -> None:
        created = {(each.resource, namespace_of(each.obj), name_of(each.obj)): each.obj for each in applied}
        now.target, workload, service = self.target, self.target.workload, self.target.service.obj
        self._others = others_of(self.manifests, workload)
        now.service = created[SERVICES, namespace_of(service), name_of(service)]
        owner = created[workload.resource, namespace_of(workload.obj), name_of(workload.obj)]
        now.owner = of_pod(owner) if workload.resource == PODS else owner

    async def _reach(self, now: Experiment) -> None:
        """Return when requests reach the Pods."""
        there = now.of()
        check_target_port(self.target, name_of(now.service))
        if not is_headless(now.service):  # no rule leads to those
            await now.waiting(there).until(there.routed, "the node's rules to name every Pod")

    def _say_what_is_chosen(self, now: Experiment) -> None:
        plan, workload = now.options.propagation, kubectl_name(self.target.workload)
        if plan.most > plan.most_to(now.options.source) == 0:
            other = "--from balancer" if now.options.source != "balancer" else "--from node"
            now.say(
                tell(
                    "note: --propagation $plan delays nothing for these requests; $option sends others",
                    plan=plan.text,
                    option=other,
                )
            )
        if self._others and not now.options.workload:
            now.say(
                tell(
                    "note: of several workloads $workload is the one behind the Service (--workload chooses)",
                    workload=workload,
                )
            )
        version = now.options.kubernetes_version
        now.say(
            tell("Kubernetes $version is up; waiting for $workload to be Ready", version=version, workload=workload)
        )

    # -- requests -----------------------------------------------------------------------------------------------------

    async def send(self, now: Experiment, stack: AsyncExitStack, tasks: Tasks) -> Sending:
        service = now.service
        now.foreign = await self._pods_of(now)
        self._strangers = await self._addresses_of_strangers(service, await now.of().pods())
        address = await self._address(now)
        if now.options.source == "published":
            address, self._carried = await stack.enter_async_context(self._published(now))
        load = await self._load(now)
        stack.callback(load.close)
        host = f"{name_of(service)}.{namespace_of(service)}.svc.cluster.local"
        load.start(replace(now.options.load, target=address, host=host))
        if is_headless(service):
            load.targets([address])
        if now.options.source == "balancer":
            delay = now.options.propagation.of("balancer")
            self._balancer = Balancer(now.world, self.client, service, self.target.port, delay, load.targets)
            tasks.spawn(self._balancer.run(), name="balancer")
        control = f"{now.options.control:g}"
        now.say(tell("Ready; $seconds s of requests before anything is disrupted", seconds=control))
        return load

    async def _address(self, now: Experiment) -> tuple[str, int]:
        """Where the first requests go: to the Service, or, because it has no address, to a Pod of a headless one."""
        service = now.service
        if not is_headless(service):
            return service["spec"]["clusterIP"], self.target.port["port"]
        template = self.target.workload.obj["spec"]["template"]["spec"]
        number, _ = serving_containers(template, self.target.container_port)
        pod = sorted(await now.of().pods(), key=name_of)[0]
        return pod["status"]["podIP"], number or self.target.port["port"]

    async def _pods_of(self, now: Experiment) -> set[str]:
        """The uids of the Pods of other workloads."""
        return {uid_of(pod) for each in self._others for pod in await now.of(each).pods()}

    async def _addresses_of_strangers(self, service: Object, own: Sequence[Object]) -> dict[str, list[Manifest]]:
        """Addresses of Pods that the Service selects and that are not the workload's, with what they are of."""
        selector = service["spec"].get("selector") or {}
        selecting = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
        listed = await self.client.list(PODS, namespace_of(service), label_selector=selecting)
        known, found = {uid_of(pod) for pod in own}, dict[str, list[Manifest]]()
        for pod in listed.items:
            address, labels = (pod.get("status") or {}).get("podIP"), pod["metadata"].get("labels") or {}
            if address and uid_of(pod) not in known:
                found[address] = [each for each in self._others if labels_of(each).items() <= labels.items()]
        return found

    async def _load(self, now: Experiment) -> "LoadClient | VirtualLoad":
        if now.options.source == "published":
            return await LoadClient.on_host()
        load: LoadClient | VirtualLoad = await self.cluster.load()
        if now.options.source == "pod":
            load.enter(await self._client_pod(now))
        return load

    def _published(self, now: Experiment) -> "AbstractAsyncContextManager[tuple[tuple[str, int], Carried]]":
        assert isinstance(self.cluster, Running)  # no packet leaves virtual time
        return published(self.cluster, now.world, now.service, self.target.port)

    async def _client_pod(self, now: Experiment) -> int:
        """A Pod that does nothing but to lend its network; the pid of its process, as the cluster sees it."""
        container = {"name": "client", "image": "busybox:1.36", "command": ["sleep", "86400"]}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
        node = {"nodeName": FIRST_NODE}  # the load generator's, because its connection tracking is asked
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": CLIENT_POD, "namespace": namespace_of(now.service)},
            "spec": {**spec, **node},
        }
        made = await self.client.create(PODS, pod, namespace_of(now.service))
        pids: list[int] = []

        async def running() -> str:
            started = [r for r in self.records if r.kind == kinds.PROCESS_STARTED and r.pod_uid == uid_of(made)]
            pids.extend(record.facts_as(kinds.PROCESS_STARTED)["pid"] for record in started)
            return "" if pids else "it has not started"

        await now.waiting(now.of()).until(running, f"the Pod {CLIENT_POD} to run")
        return pids[0]

    def misled(self, now: Experiment) -> Judgement | None:
        return sent_to_strangers(now.outcomes, self.target, self._strangers)

    async def disturb(self, now: Experiment) -> str:
        return await self.disrupted(now, await now.of().pods())

    # -- what was found -----------------------------------------------------------------------------------------------

    async def settle(self, now: Experiment) -> None:
        if self._carried is not None:
            now.outcomes[:] = [self._carried.completed(each) for each in now.outcomes]
        if now.unheard is None:
            await self._read_to_the_end(now)

    async def observe(self, now: Experiment, load: Sending) -> Observed:
        template = now.owner["spec"]["template"]["spec"]
        lives = pod_lives(self.records, *serving_containers(template, self.target.container_port))
        now.foreign |= await self._pods_of(now)
        lives = [life for life in lives if life.uid not in now.foreign]
        if self._balancer is not None:
            self._balancer.note(lives)
        output, whole = self._output()
        # Nothing was disrupted where nobody was heard: then all of it is the control period's.
        left = nobody_left(self.records, lives if self._balancer is not None else ()) if now.of_run else None
        found = account(
            now.outcomes, lives, output, now.disrupted_at, begun=load.begun, whole_output=whole, nobody_left=left
        )
        notes = (
            *now.options.differences,
            *of_dropped(self.manifests, now.options.gates),
            *of_manifests(self.manifests),
            *of_images(self.records),
            *of_load(now.outcomes),
            *of_answers(now.outcomes, now.options.load),
            *of_balance(found),
            *of_stranded(now.stranded, now.node),
        )
        return Observed(found, lives, lives, [each.unrouted.latest for each in lives if each.unrouted], notes)

    async def check(self, now: Experiment, judgement: Judgement) -> Judgement:
        if now.of_run:  # the workload is gone
            return of_pods(judgement) if self.target.workload.resource == PODS else judgement
        return await checked_by_server(self.client, judgement, now.owner, self.target.workload.resource)

    async def _read_to_the_end(self, now: Experiment) -> None:
        """What the Pods printed of answered requests may come later than the answers, on a busy machine much later."""
        await self.cluster.drain_records(0.2)
        deadline = monotonic(now.clock) + _LAST_OUTPUT_SECONDS
        while answered_unseen(now.outcomes, ids_printed(self._output()[0])) and monotonic(now.clock) < deadline:
            await self.cluster.drain_records(0.2)

    def _output(self) -> tuple[list[str], bool]:
        """Return what the Pods printed, and whether that is all: a shim sends only so many lines a second, and a ring
        holds only so many records for a reader that is late."""
        lines = [record.facts_as(kinds.OUTPUT) for record in self.records if record.kind == kinds.OUTPUT]
        whole = not self.cluster.records_overwritten and not any(line.get("dropped") for line in lines)
        return [str(line.get("text")) for line in lines], whole


def nobody_left(records: Sequence[Record], targets: Sequence[PodLife] = ()) -> float:
    """Return when the rules named no ready Pod any more, in seconds of the monotonic clock; infinite if they do.

    Those of a node go on naming Pods that end where no other one is ready. (topology.go:CategorizeEndpoints)
    `targets` are the Pods that a load balancer sends to in its place: what counts is when it dropped the last one.
    """
    if targets:
        return max(math.inf if each.unrouted is None else each.unrouted.latest for each in targets)
    ready: set[tuple[str, str]] = set()
    left = math.inf
    for record in records:
        if record.kind != kinds.ENDPOINT_RULES_WRITTEN:
            continue
        facts = record.facts_as(kinds.ENDPOINT_RULES_WRITTEN)
        which = (facts["node"], record.pod_uid)
        (ready.add if facts["receives"] and facts["ready"] else ready.discard)(which)
        left = math.inf if ready else min(left, record.at_ns / 1e9)
    return left
