"""What `trace` tells of a Pod through the API alone, beside the exact story of the same Pod (virtual time)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service
from workloads import autoscaler, pods, workload

from lastcall.endings.ending import build_endings
from lastcall.endings.facts.pod import pod_facts
from lastcall.endings.story import DecidedBy, Ending
from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import is_terminating, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import EVENTS, HORIZONTALPODAUTOSCALERS, NODES, PODS
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds
from lastcall.trace.follower import Follower, Options
from lastcall.trace.scope import Scope, target_of
from lastcall.world.tasks import Tasks

STEPS = (
    kinds.DELETE_ACCEPTED,
    kinds.KILLING,
    kinds.PRE_STOP_STARTED,
    kinds.PRE_STOP_FINISHED,
    kinds.STOP_REQUESTED,
    kinds.PROCESS_EXITED,
    kinds.OBJECT_REMOVED,
)
"""What both tell. The signal is a step of its own below: one to a hook's process is not seen through the API."""
KNOWN_TO_SECONDS = 1.6
"""finishedAt is in whole seconds, and Events come when they come."""

Act = Callable[[VirtualCluster], Awaitable[None]]


async def traced(
    cluster: VirtualCluster, act: Act, count: int = 1, client: Any = None, scope: Scope | None = None
) -> list[Ending]:
    follower = Follower(
        client or cluster.client,
        scope or Scope(cluster.namespace),
        world=cluster.world,
        kubernetes_version="1.36",
        options=Options(count=count),
    )
    found: list[Ending] = []
    async with Tasks() as tasks:
        tasks.spawn(follower.run(), name="trace")
        await follower.synced()
        await act(cluster)
        async for ending in follower.endings():
            found.append(ending)
        tasks.cancel()
    assert follower.failure is None
    return found


async def delete_p(cluster: VirtualCluster) -> None:
    await cluster.wait_ready("p")
    await cluster.sleep(5)
    await cluster.delete("pod/p")
    await cluster.wait_gone("p")


def both(manifest: Any, programs: Any, act: Act = delete_p) -> tuple[Ending, Ending]:
    """(told through the API, told by all records) of Pod p."""
    told: list[Ending] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(service("svc", app="p"), manifest)
        told.extend(await traced(cluster, act))

    cluster = run_cluster(scenario, programs)
    exact = build_endings(cluster.records(), [pod_facts(cluster.pod("p"))], kubernetes_version="1.36")
    return told[0], exact[0]


def steps(ending: Ending, *without: str) -> list[tuple[str, str]]:
    """The order of what happened from the DELETE on."""
    return [
        (e.record.kind, e.record.container)
        for e in ending.entries
        if e.record.kind in STEPS and e.record.kind not in without and e.at >= 0
    ]


LIVES = {
    "ends on its signal": (pod_manifest(terminationGracePeriodSeconds=10), {"app": Program(drain_seconds=3)}, ()),
    "ignores its signal": (pod_manifest(terminationGracePeriodSeconds=5), {"app": Program(on_term="ignore")}, ()),
    "fails on its signal": (pod_manifest(), {"app": Program(drain_seconds=2, exit_code=3)}, ()),
    "a sleep for a hook": (
        pod_manifest(containers=[container(**pre_stop(sleep=4))]),
        {"app": Program(drain_seconds=1)},
        (),
    ),
    "a hook that fails": (
        pod_manifest(containers=[container(**pre_stop(exec=["false"]))]),
        {"app": Program(drain_seconds=1)},
        (),
    ),
    "a hook of unknown length": (
        pod_manifest(containers=[container(**pre_stop(exec=["sleep", "3"]))]),
        {"app": Program(drain_seconds=1)},
        (kinds.PRE_STOP_FINISHED, kinds.STOP_REQUESTED),
    ),
}


@pytest.mark.parametrize("life", LIVES)
def test_the_story_is_that_of_run_but_for_what_is_said_to_be_unknown(life: str) -> None:
    manifest, programs, unknown = LIVES[life]
    told, exact = both(manifest, programs)
    assert told.outcome == exact.outcome
    assert steps(told) == steps(exact, *unknown)
    assert told.grace_seconds == exact.grace_seconds
    assert told.gone == pytest.approx(exact.gone, abs=0.2)
    (mine,), (its,) = told.containers, exact.containers
    assert (mine.exit.code, mine.exit.reason, mine.exit.signal) == (its.exit.code, its.exit.reason, its.exit.signal)
    assert mine.exit.at == pytest.approx(its.exit.at, abs=KNOWN_TO_SECONDS)
    if unknown:
        assert mine.stop.signal_at is None
        assert "How the preStop hook of app ended is not known, nor when its stop signal came." in told.not_known
    else:
        assert mine.stop.signal_at == pytest.approx(its.stop.signal_at, abs=0.5)
    kept = {each.id for each in told.findings}
    assert kept <= {each.id for each in exact.findings}, "what only a node's records show is not claimed"
    assert [(e.ready, e.serving, e.terminating) for e in told.endpoints] == [
        (e.ready, e.serving, e.terminating) for e in exact.endpoints
    ]


def test_what_was_concluded_says_so() -> None:
    told, _ = both(*LIVES["ends on its signal"][:2])
    observed = {e.record.kind for e in told.entries if e.record.evidence == "observed"}
    by_the_node = {kinds.KILLING, kinds.STOP_REQUESTED, kinds.SIGNAL_SENT, kinds.PROCESS_EXITED, kinds.DELETION_DECIDED}
    assert kinds.DELETE_ACCEPTED in observed
    assert not observed & by_the_node


def test_a_forced_deletion_leaves_the_end_unknown() -> None:
    async def force(cluster: VirtualCluster) -> None:
        await cluster.wait_ready("p")
        await cluster.delete("pod/p", grace=0)
        await cluster.wait_gone("p")

    told, _ = both(pod_manifest(), {"app": Program(drain_seconds=3)}, force)
    assert told.outcome == "unknown"
    assert told.zero_kind == kinds.DELETE_ACCEPTED
    assert "How app ended is not known: its object was removed before its status showed it." in told.not_known


def test_a_pod_that_ends_by_itself_is_told_without_a_delete() -> None:
    async def wait(cluster: VirtualCluster) -> None:
        await cluster.wait_phase("p", "Succeeded")

    told, _ = both(pod_manifest(restartPolicy="Never"), {"app": Program(exits_after=4)}, wait)
    assert told.outcome == "graceful"
    assert told.decided_by is not None
    assert told.decided_by.reason == "completed"
    assert told.gone is None


def test_late_attachment_tells_what_the_object_and_its_events_still_show() -> None:
    told: list[Ending] = []

    async def wait(cluster: VirtualCluster) -> None:
        await cluster.wait_gone("p")

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=20))
        await cluster.wait_ready("p")
        await cluster.delete("pod/p")
        await cluster.sleep(5)
        told.extend(await traced(cluster, wait))

    run_cluster(scenario, {"app": Program(drain_seconds=10)})
    (ending,) = told
    accepted = next(e.record for e in ending.entries if e.record.kind == kinds.DELETE_ACCEPTED)
    assert accepted.evidence == "inferred"
    assert ending.gone == pytest.approx(10, abs=2.5)
    assert ending.containers[0].stop.signal_at == pytest.approx(0, abs=1.5)
    assert any(sentence.startswith("It was followed from about") for sentence in ending.not_known)


def test_the_chain_of_a_rollout_is_followed_to_who_changed_the_deployment() -> None:
    async def scale(cluster: VirtualCluster) -> None:
        await cluster.patch("deployment/web", {"spec": {"replicas": 1}})

    assert reason_of(scale) == ("scaledIn", "Deployment")

    async def change(cluster: VirtualCluster) -> None:
        await cluster.patch("deployment/web", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}})

    assert reason_of(change) == ("rolledOut", "Deployment")

    async def delete(cluster: VirtualCluster) -> None:
        await cluster.delete("deployment/web", propagation="Background")

    assert reason_of(delete) == ("ownerDeleted", "Deployment")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_an_autoscaler_that_scales_in_is_named_by_what_the_api_shows(kind: str) -> None:
    async def scale(cluster: VirtualCluster) -> None:
        await cluster.create(autoscaler(kind, most=1))

    assert decided(scale, kind).why.startswith(
        f"HorizontalPodAutoscaler web-sizes scaled {kind} web from 2 to 1 "
        "(Current number of replicas above Spec.MaxReplicas): "
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_of_an_autoscaler_that_may_not_be_read_its_component_is_named(kind: str) -> None:
    async def scale(cluster: VirtualCluster) -> None:
        await cluster.create(autoscaler(kind, most=1))

    found = decided(scale, kind, forbidden=(HORIZONTALPODAUTOSCALERS,))
    assert found.why.startswith(f"{kind} web was scaled from 2 to 1 by horizontal-pod-autoscaler: ")


def reason_of(act: Act) -> tuple[str, str]:
    """(reason, kind that the sentence begins with) for the first Pod of a Deployment of two that ends."""
    by = decided(act)
    return by.reason, by.why.partition(" ")[0]


def decided(act: Act, kind: str = "Deployment", forbidden: tuple[Any, ...] = ()) -> DecidedBy:
    """Who decided the end of the first Pod that ends, of two Pods of a workload `web`."""
    told: list[Ending] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(workload(kind, replicas=2))

        async def ready() -> bool:
            return sum(is_pod_ready(pod) and not is_terminating(pod) for pod in await pods(cluster)) == 2

        await cluster.wait_until_async(ready)
        await cluster.sleep(2)
        scope = Scope(cluster.namespace, targets=(target_of(f"{kind.lower()}/web"),))
        told.extend(await traced(cluster, act, client=Interrupted(cluster.client, forbidden), scope=scope))

    run_cluster(scenario, {"app": Program(drain_seconds=1)})
    by = told[0].decided_by
    assert by is not None, told[0].not_known
    return by


def test_the_pod_that_preempts_another_is_named() -> None:
    told: list[Ending] = []

    def asks(name: str, priority: int) -> Any:
        resources = {"requests": {"cpu": "1500m"}}
        return pod_manifest(
            name, priorityClassName="high" if priority else "", containers=[container(resources=resources)]
        )

    async def preempt(cluster: VirtualCluster) -> None:
        await cluster.create(asks("vip", 1000))

    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(high, asks("p", 0))
        await cluster.wait_ready("p")
        await cluster.sleep(2)
        told.extend(await traced(cluster, preempt))

    namespace = run_cluster(scenario, {"app": Program(drain_seconds=1)}).namespace
    by = told[0].decided_by
    assert by is not None
    assert by.why == f"it was preempted by {namespace}/vip, a Pod of higher priority"


EVICTIONS = {
    "pressure": ("The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. ", "nodePressure"),
    "its own limit": ('Usage of EmptyDir volume "s" exceeds the limit "1Mi". ', "localStorage"),
}


@pytest.mark.parametrize("name", EVICTIONS)
def test_a_kubelet_that_evicts_is_told_in_its_own_words(name: str) -> None:
    message, reason = EVICTIONS[name]
    told: list[Ending] = []
    started = "2030-01-01T00:00:00Z"

    async def status(cluster: VirtualCluster, phase: str, state: Any, **more: Any) -> None:
        container = {"name": "app", "image": "app:1", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        change = {"phase": phase, "containerStatuses": [container], **more}
        await cluster.patch("pod/p", {"status": change}, subresource="status")

    async def evict(cluster: VirtualCluster) -> None:
        ended = {"exitCode": 137, "reason": "Error", "startedAt": started, "finishedAt": "2030-01-01T00:00:09Z"}
        await status(cluster, "Failed", {"running": None, "terminated": ended}, reason="Evicted", message=message)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.create(NODES, {"metadata": {"name": "elsewhere"}})
        await cluster.create(pod_manifest(nodeName="elsewhere", tolerations=[{"operator": "Exists"}]))
        await status(cluster, "Running", {"running": {"startedAt": started}})
        told.extend(await traced(cluster, evict))

    run_cluster(scenario)
    by = told[0].decided_by
    assert by is not None
    assert (by.actor, by.reason, by.why) == ("kubelet", reason, f"the kubelet evicted it: {message.strip(' .')}")


def test_the_taint_that_evicts_is_the_one_that_the_pod_does_not_tolerate_even_if_it_is_gone_by_then() -> None:
    told: list[Ending] = []
    first, second = ({"key": key, "effect": "NoExecute", "timeAdded": None} for key in ("known", "maintenance"))

    async def taint(cluster: VirtualCluster) -> None:
        await cluster.patch("node/node-1", {"spec": {"taints": [first, second]}})
        await cluster.sleep(0.5)
        await cluster.patch("node/node-1", {"spec": {"taints": [first]}})

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(tolerations=[{"key": "known", "operator": "Exists"}]))
        await cluster.wait_ready("p")
        await cluster.sleep(2)
        told.extend(await traced(cluster, taint))

    run_cluster(scenario, {"app": Program(drain_seconds=1)})
    by = told[0].decided_by
    assert by is not None
    assert (by.reason, by.why) == (
        "tainted",
        "it was evicted from node-1 by its taint maintenance:NoExecute, which this Pod does not tolerate",
    )


class Interrupted:
    """A client whose watches and lists fail while `down`, and whose requests for `forbidden` are refused."""

    def __init__(self, client: Any, forbidden: tuple[Any, ...] = ()) -> None:
        self._client = client
        self._forbidden = forbidden
        self.down = False
        self.compacted = False
        self._open: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def list(self, resource: Any, namespace: str = "", **more: Any) -> Any:
        self._check(resource)
        return await self._client.list(resource, namespace, **more)

    def watch(self, resource: Any, namespace: str = "", **more: Any) -> Any:
        return _Watch(self, self._client.watch(resource, namespace, **more), resource)

    def _check(self, resource: Any) -> None:
        if resource in self._forbidden:
            raise status_failure(403, "Forbidden", f"{resource.plural} is forbidden")
        if self.down:
            raise ConnectionLost("the API server went away")


class _Watch:
    def __init__(self, owner: Interrupted, inner: Any, resource: Any) -> None:
        self._owner, self._inner, self._resource = owner, inner, resource

    async def __aenter__(self) -> Any:
        self._owner._check(self._resource)
        if self._owner.compacted and self._resource is PODS:
            self._owner.compacted = False
            raise StatusError({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
        self._events = await self._inner.__aenter__()
        return self._read()

    async def _read(self) -> Any:
        async for event in self._events:
            if self._owner.down:
                raise ConnectionLost("the API server went away")
            yield event

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


def test_a_gap_in_the_watch_is_said_and_the_end_is_still_told() -> None:
    told: list[Ending] = []

    async def scenario(cluster: VirtualCluster) -> None:
        client = Interrupted(cluster.client)

        async def act(cluster: VirtualCluster) -> None:
            await cluster.wait_ready("p")
            await cluster.delete("pod/p")
            await cluster.sleep(1)
            client.down = client.compacted = True
            await cluster.wait_gone("p")
            await cluster.sleep(2)
            client.down = False

        await cluster.create(pod_manifest())
        told.extend(await traced(cluster, act, client=client))

    run_cluster(scenario, {"app": Program(drain_seconds=3)})
    (ending,) = told
    assert ending.outcome == "unknown"
    assert any("not seen" in sentence for sentence in ending.not_known), ending.not_known


def test_a_right_that_is_missing_is_named_with_what_the_story_lacks() -> None:
    told: list[Ending] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        told.extend(await traced(cluster, delete_p, client=Interrupted(cluster.client, (EVENTS,))))

    run_cluster(scenario, {"app": Program(drain_seconds=3)})
    (ending,) = told
    assert ending.outcome == "graceful"
    assert ending.containers[0].stop.signal_at is None
    assert not [each for each in ending.findings if each.id == "endedByItself"]
    assert any("reading events is not allowed" in sentence for sentence in ending.not_known)


def test_without_rights_for_pods_nothing_is_followed() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        follower = Follower(Interrupted(cluster.client, (PODS,)), Scope(cluster.namespace), world=cluster.world)  # type: ignore[arg-type]
        await follower.run()
        assert isinstance(follower.failure, StatusError)
        assert [ending async for ending in follower.endings()] == []

    run_cluster(scenario, {})


def test_a_pod_of_the_same_name_is_another_one() -> None:
    told: list[Ending] = []

    async def twice(cluster: VirtualCluster) -> None:
        for _ in range(2):
            await cluster.sleep(5)
            await cluster.delete("pod/p")
            await cluster.sleep(5)
            await cluster.create(pod_manifest())

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        told.extend(await traced(cluster, twice, count=2))

    run_cluster(scenario, {"app": Program(drain_seconds=1)})
    assert len({ending.pod.uid for ending in told}) == 2
    assert {name_of({"metadata": {"name": ending.pod.name}}) for ending in told} == {"p"}


def test_a_restart_of_a_pod_that_lives_on_is_a_story_of_its_own() -> None:
    found: list[Ending] = []

    async def scenario(cluster: VirtualCluster) -> None:
        follower = Follower(
            cluster.client, Scope(cluster.namespace), world=cluster.world, kubernetes_version="1.36",
            options=Options(restarts=True),
        )  # fmt: skip
        async with Tasks() as tasks:
            tasks.spawn(follower.run(), name="trace")
            await follower.synced()
            await cluster.create(pod_manifest())
            await cluster.sleep(40)
            assert follower.yielded == 0
            follower.stop()
            async for ending in follower.endings():
                found.append(ending)
            tasks.cancel()

    run_cluster(scenario, {"app": Program(exits_after=25, natural_exit_code=3)})
    (ending,) = found
    assert not ending.zero_kind and ending.gone is None
    assert [(each.exit.code, each.exit.ended_by) for each in ending.earlier] == [(3, "itself")]
    assert "crashed" in [each.id for each in ending.findings]
