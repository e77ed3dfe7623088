"""Config, PLEG, back-off, work queue, garbage: the small parts of the kubelet."""

import asyncio

import pytest

from lastcall.kube.cri.api import (
    ContainerEventResponse,
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
)
from lastcall.kube.node.admission.critical_pods import is_critical_pod
from lastcall.kube.node.config import Operation, classify, merge
from lastcall.kube.node.garbage.decide import instances_to_prune
from lastcall.kube.node.garbage.manager import ContainerGC
from lastcall.kube.node.interfaces import PodStatus, StartError
from lastcall.kube.node.logs.files import LogLinks
from lastcall.kube.node.pods.runtime_pod import make_pod_status
from lastcall.kube.node.runtime.backoff import Backoff
from lastcall.kube.node.runtime.pleg import PodLifecycleEventGenerator, generate_events
from lastcall.kube.node.runtime.start_container import highest_log_number, restart_count
from lastcall.kube.node.status.reason_cache import MAX_ENTRIES, LastStartErrors
from lastcall.kube.node.stopping.order import prerequisites_of
from lastcall.kube.node.workers.queue import WorkQueue
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual

# -- config -----------------------------------------------------------------------------------------


def pod(uid="u", **metadata):
    spec = metadata.pop("spec", {"containers": []})
    status = metadata.pop("status", {"phase": "Running"})
    return {"metadata": {"name": "p", "namespace": "default", "uid": uid, **metadata}, "spec": spec, "status": status}


@pytest.mark.rule("node-semantics 2/semantic, 2/first-seen")
@pytest.mark.parametrize(
    ("old", "new", "operation"),
    [
        (None, pod(), Operation.ADD),
        (None, pod(deletionTimestamp="t"), Operation.ADD),
        (pod(), None, Operation.REMOVE),
        (pod(), pod(), None),
        (pod(), pod(labels={"a": "b"}), Operation.UPDATE),
        (pod(), pod(annotations={"a": "b"}), Operation.UPDATE),
        (pod(), pod(annotations={"kubernetes.io/config.seen": "now"}), None),
        (pod(), pod(spec={"containers": [1]}), Operation.UPDATE),
        (pod(), pod(deletionTimestamp="t", deletionGracePeriodSeconds=5), Operation.DELETE),
        (
            pod(deletionTimestamp="t", deletionGracePeriodSeconds=5),
            pod(deletionTimestamp="t", deletionGracePeriodSeconds=1),
            Operation.DELETE,
        ),
        (pod(), pod(status={"phase": "Failed"}), Operation.RECONCILE),
        (pod(), pod(finalizers=["f"], resourceVersion="9", ownerReferences=[{}]), None),
        (None, None, None),
    ],
)
def test_what_a_change_of_one_pod_means(old, new, operation):
    assert classify(old, new) is operation


@pytest.mark.rule("node-semantics 2/order, 2/removed")
def test_a_set_is_compared_by_uid():
    known = {"a": pod("a", labels={"v": "old"}), "b": pod("b")}
    found, updates = merge(known, [pod("b", labels={"x": "y"}), pod("c")])
    assert list(found) == ["b", "c"]
    assert [p["metadata"]["uid"] for p in updates.pods[Operation.ADD]] == ["c"]
    assert [p["metadata"]["uid"] for p in updates.pods[Operation.UPDATE]] == ["b"]
    assert updates.pods[Operation.REMOVE] == [known["a"]]  # the version the node knew
    assert list(updates.pods) == list(Operation)


# -- PLEG -------------------------------------------------------------------------------------------


def container(name="c", state=ContainerState.CONTAINER_RUNNING, created=1, id=None):
    labels = {"io.kubernetes.pod.uid": "u"}
    return ContainerStatus(
        id or f"{name}{created}", ContainerMetadata(name), "s", state, "i", "i", created, labels=labels
    )


def sandbox(state=PodSandboxState.SANDBOX_READY, ips=("10.0.0.1",), created=1):
    return PodSandboxStatus(f"s{created}", PodSandboxMetadata("p", "u", "default"), state, created, ips)


def status(*containers, sandboxes=()):
    return PodStatus("u", "p", "default", (), containers, tuple(sandboxes))


EXITED = ContainerState.CONTAINER_EXITED


@pytest.mark.rule("node-semantics 14/events")
@pytest.mark.parametrize(
    ("old", "new", "types"),
    [
        (None, status(container()), ["ContainerStarted"]),
        (status(container()), status(container(state=EXITED)), ["ContainerDied"]),
        (status(container()), status(), ["ContainerDied", "ContainerRemoved"]),
        (status(container(state=EXITED)), status(), ["ContainerRemoved"]),
        (status(container()), status(container()), []),
        (None, status(container(state=ContainerState.CONTAINER_CREATED)), ["ContainerChanged"]),
        (
            status(sandboxes=[sandbox()]),
            status(sandboxes=[sandbox(PodSandboxState.SANDBOX_NOTREADY)]),
            ["ContainerDied"],
        ),
    ],
)
def test_events_between_two_listings(old, new, types):
    assert [event.type.value for event in generate_events("u", old, new)] == types


@pytest.mark.rule("node-semantics 14/ip")
def test_addresses_stay_known_after_the_sandbox_is_gone():
    down = sandbox(PodSandboxState.SANDBOX_NOTREADY, ())
    assert make_pod_status("u", "p", "d", [down], [], ("10.0.0.1",)).ips == ("10.0.0.1",)
    up = sandbox(ips=("10.0.0.2",), created=2)
    assert make_pod_status("u", "p", "d", [down, up], [], ("10.0.0.1",)).ips == ("10.0.0.2",)


class Runtime:
    """Lists what it is told; a listing takes a second."""

    def __init__(self, world):
        self.world = world
        self.containers = []
        self.listings = 0
        self.events = asyncio.Queue()

    async def list_pod_sandbox(self, uid=""):
        return []

    async def list_containers(self, uid=""):
        self.listings += 1
        found = list(self.containers)
        await self.world.clock.sleep(1)
        return found

    async def get_container_events(self):
        while True:
            yield await self.events.get()


@pytest.mark.rule("node-semantics 4.3/fresh")
def test_a_status_is_never_older_than_asked_for_even_within_one_instant():
    async def main(world):
        runtime = Runtime(world)
        pleg = PodLifecycleEventGenerator(world, runtime, lambda events: None)
        first = await pleg.get_newer_than("u", "p", "d", 0)
        assert first.container_statuses == () and runtime.listings == 1
        assert await pleg.get_newer_than("u", "p", "d", 0) is first and runtime.listings == 1
        mark = pleg.now()
        runtime.containers.append(container())
        again = await pleg.get_newer_than("u", "p", "d", mark)
        assert len(again.container_statuses) == 1 and pleg.refreshed_at("u") > mark

    run_virtual(main)


def test_those_who_wait_for_one_pod_share_a_listing_that_began_late_enough():
    async def main(world):
        runtime = Runtime(world)
        pleg = PodLifecycleEventGenerator(world, runtime, lambda events: None)
        mark = pleg.now()
        answers = await asyncio.gather(*(pleg.get_newer_than("u", "p", "d", mark) for _ in range(5)))
        assert runtime.listings == 1 and all(answer is answers[0] for answer in answers)

    run_virtual(main)


@pytest.mark.rule("node-semantics 14/relist")
def test_a_runtime_event_brings_a_fresh_status_at_once():
    async def main(world):
        runtime, told = Runtime(world), []
        pleg = PodLifecycleEventGenerator(world, runtime, told.extend)
        async with Tasks() as tasks:
            tasks.spawn(pleg.run(), name="pleg")
            await world.clock.sleep(0)
            runtime.containers.append(container())
            runtime.events.put_nowait(ContainerEventResponse("c1", 1, 0, "u"))
            await world.clock.sleep(1.5)
            assert [event.type.value for event in told] == ["ContainerStarted"]
            assert pleg.get("u").running_containers()
            tasks.cancel()

    run_virtual(main)


# -- back-off, counts, caches -----------------------------------------------------------------------

S = 1_000_000_000


@pytest.mark.rule("node-semantics 9.5/times")
def test_back_off_waits_0_10_20_40_80_160_300_300():
    backoff, waits, now = Backoff(), [], 0
    for _ in range(9):
        exited = now
        while backoff.is_in_backoff_since("k", exited, now):
            now += S
        waits.append((now - exited) // S)
        backoff.next("k", exited, now)
        now += S  # it runs for a second
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.rule("node-semantics 9.5/forgotten, 4.6/back-offs")
def test_back_off_is_forgotten_after_ten_quiet_minutes():
    backoff = Backoff()
    backoff.next("k", 0, 0)
    assert backoff.is_in_backoff_since("k", 5 * S, 6 * S)
    assert not backoff.is_in_backoff_since("k", 601 * S, 602 * S)
    backoff.collect_garbage(601 * S)
    assert backoff.get_ns("k") == 0


def test_a_window_counts_from_the_exit_or_from_the_last_failure_and_ends_sharply():
    """client-go util/flowcontrol/backoff.go: IsInBackOffSince, IsInBackOffSinceUpdate, hasExpired."""
    backoff = Backoff(10, 40)
    assert (backoff.get_ns("k"), backoff.left_ns("k", 0), backoff.is_in_backoff_since("k", 0, 0)) == (0, 0, False)
    backoff.next("k", 0, 100 * S)
    assert backoff.get_ns("k") == 10 * S
    assert [backoff.left_ns("k", now * S) for now in (100, 109, 110, 111)] == [10 * S, S, 0, 0]
    assert [backoff.is_in_backoff_since("k", 100 * S, now * S) for now in (109, 110)] == [True, False]
    backoff.next("k", 180 * S, 180 * S)
    assert backoff.get_ns("k") == 20 * S, "80 s after the last failure it is not forgotten yet"
    backoff.collect_garbage(260 * S)
    assert backoff.get_ns("k") == 20 * S
    backoff.next("k", 261 * S, 261 * S)
    assert backoff.get_ns("k") == 10 * S
    backoff.next("other", 0, 0)
    backoff.collect_garbage(262 * S)
    assert (backoff.get_ns("k"), backoff.get_ns("other")) == (10 * S, 0)


@pytest.mark.rule("node-semantics 9.4/restart-count")
def test_restart_counts_outlive_the_runtime_s_record(tmp_path):
    assert restart_count(status(), "c", None) == 0
    assert restart_count(status(container()), "c", 7) == 1
    for name in ("0.log", "11.log", "2.log.20300101-000000", "x.log", "note"):
        (tmp_path / name).touch()
    assert restart_count(status(), "c", highest_log_number(str(tmp_path))) == 12
    assert highest_log_number(str(tmp_path / "none")) is None


@pytest.mark.rule("node-semantics 3/prune, 17.1/kept")
def test_one_old_instance_is_kept_beside_the_one_that_just_ended():
    all_ended = [container(state=EXITED, created=n) for n in (4, 3, 2, 1)]
    pruned = instances_to_prune(status(*all_ended), all_ended[0], remove_all=False)
    assert [c.created_at for c in pruned] == [2, 1]
    assert len(instances_to_prune(status(*all_ended), all_ended[0], remove_all=True)) == 4


def test_start_errors_are_forgotten_with_success_and_with_age():
    cache = LastStartErrors()
    cache.update("u", "c", StartError("ErrImagePull", "no"))
    assert cache.get("u", "c").reason == "ErrImagePull"
    cache.update("u", "c", None)
    assert cache.get("u", "c") is None
    for number in range(MAX_ENTRIES + 1):
        cache.update(str(number), "c", StartError("x", ""))
    assert cache.get("0", "c") is None and cache.get("1", "c") is not None


@pytest.mark.rule("node-semantics 8/regular-first")
def test_sidecars_wait_for_all_regular_containers_and_for_the_next_sidecar():
    always = {"restartPolicy": "Always"}
    spec = {
        "containers": [{"name": "x"}, {"name": "y"}],
        "initContainers": [{"name": "a", **always}, {"name": "i"}, {"name": "b", **always}],
    }
    assert prerequisites_of({"spec": spec}) == {"a": ("x", "y", "b"), "b": ("x", "y")}


def test_the_work_queue_tells_each_uid_at_its_latest_time():
    async def main(world):
        told = []
        queue = WorkQueue(world, lambda uid: told.append((uid, world.clock.monotonic_ns() / 1e9)))
        async with Tasks() as tasks:
            tasks.spawn(queue.run(), name="queue")
            queue.enqueue("late", 10)
            queue.enqueue("soon", 5)
            queue.enqueue("gone", 5)
            queue.enqueue("moved", 1)
            queue.forget("gone")
            await world.clock.sleep(0.5)
            queue.enqueue("moved", 7)
            queue.enqueue("now", 0)
            await world.clock.sleep(20)
            tasks.cancel()
        assert told == [("now", 0.5), ("soon", 5.0), ("moved", 7.5), ("late", 10.0)]

    run_virtual(main)


# -- what is left behind, who is critical -----------------------------------------------------------


class Removes:
    """A runtime of which everything may be removed."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, verb):
        async def call(*arguments):
            self.calls.append((verb, *arguments))

        return call


def collector(runtime, log_root):
    return ContainerGC(
        world=None, runtime=runtime, events=None, node={}, may_remove=lambda uid: uid == "u",
        has_ended=lambda uid: False, kill_unknown=runtime.kill, log_root=str(log_root), log_links=LogLinks(""),
    )  # fmt: skip


@pytest.mark.rule("node-semantics 17.1/logs, 17.1/kept")
@pytest.mark.parametrize("running", [False, True])
def test_the_logs_of_a_pod_go_when_nothing_else_is_left_of_it(tmp_path, running):
    for uid in ("u", "kept"):
        (tmp_path / f"d_p_{uid}").mkdir()
    states = [EXITED, ContainerState.CONTAINER_RUNNING if running else EXITED]
    containers = [container(created=n, state=state) for n, state in enumerate(states)]
    down = sandbox(PodSandboxState.SANDBOX_NOTREADY)
    gone, kept = (PodStatus(uid, "p", "d", (), tuple(containers), (down,)) for uid in ("u", "kept"))
    runtime = Removes()
    asyncio.run(collector(runtime, tmp_path).collect_gone([gone, kept]))
    assert (tmp_path / "d_p_kept").exists() and (tmp_path / "d_p_u").exists() is running
    rest = [("remove_container", "c1"), ("stop_pod_sandbox", "s1"), ("remove_pod_sandbox", "s1")]
    assert runtime.calls == [("remove_container", "c0"), *([] if running else rest)]


@pytest.mark.rule("node-semantics 17.1/unknown")
def test_a_container_of_which_nobody_knows_whether_it_runs_is_killed_before_it_is_removed(tmp_path):
    lost = container(state=ContainerState.CONTAINER_UNKNOWN)
    runtime = Removes()
    assert asyncio.run(collector(runtime, tmp_path).remove_containers([lost]))
    text = "Container is in unknown state, try killing it before removal"
    assert runtime.calls == [("kill", lost, text), ("remove_container", "c1")]


@pytest.mark.rule("node-semantics 19/critical")
def test_static_pods_their_mirrors_and_system_priorities_are_critical():
    static = pod(annotations={"kubernetes.io/config.source": "file"})
    mirror = pod(annotations={"kubernetes.io/config.mirror": "x"})
    assert is_critical_pod(static) and is_critical_pod(mirror) and not is_critical_pod(pod())
    assert [is_critical_pod(pod(spec={"containers": [], "priority": p})) for p in (10, 2_000_000_000)] == [False, True]
