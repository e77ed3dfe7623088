"""The loop of a Pod's worker (pod_workers.go:podWorkerLoop) in virtual time, with a syncer of the test's."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lastcall.kube.api.meta import copy_object
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.runtime_pod import RunningPod
from lastcall.kube.node.workers import transitions
from lastcall.kube.node.workers.calls import SyncContext
from lastcall.kube.node.workers.manager import PodWorkers
from lastcall.kube.node.workers.transitions import State, UpdatePodOptions, UpdateType
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def pod(name: str = "p", *, grace: int = 30, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": "1", **metadata},
        "spec": {"containers": [{"name": "app"}], "terminationGracePeriodSeconds": grace},
        "status": {"phase": "Running"},
    }


def deleted(a_pod: dict[str, Any], grace: int = 30) -> dict[str, Any]:
    changed = copy_object(a_pod)
    changed["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:30Z", "deletionGracePeriodSeconds": grace}
    return changed


class Kubelet:
    """Everything around the workers. `acts` are what the calls do, by name, in turn; after the last one: nothing."""

    def __init__(self, world: World, tasks: Tasks) -> None:
        self.world = world
        self.calls: list[str] = []
        self.times: list[float] = []
        self.requeued: list[float] = []
        self.events: list[tuple[str, str]] = []
        self.acts: dict[str, list[Any]] = {}
        self.tick = 0
        self.began = world.clock.monotonic_ns()
        self.workers = PodWorkers(
            world=world,
            tasks=tasks,
            cache=self,
            events=self,  # type: ignore[arg-type]
            recorder=self,  # type: ignore[arg-type]
            requeue=lambda uid, seconds: self.requeued.append(seconds),
        )
        self.workers.bind(self)

    @property
    def seconds(self) -> float:
        return (self.world.clock.monotonic_ns() - self.began) / 1e9

    def update(self, a_pod: dict[str, Any], update_type: UpdateType = UpdateType.UPDATE) -> None:
        self.workers.update_pod(UpdatePodOptions(update_type, a_pod))

    # -- the cache of Pod statuses

    def get(self, uid: str) -> PodStatus | None:
        return None

    def now(self) -> int:
        self.tick += 1
        return self.tick

    def refreshed_at(self, uid: str) -> int:
        return self.tick

    async def get_newer_than(self, uid: str, name: str, namespace: str, minimum: int) -> PodStatus:
        await self._do("get_newer_than", noted=False)
        return PodStatus(uid, name, namespace)

    # -- the syncer

    async def _do(self, call: str, *, noted: bool = True) -> Any:
        if noted:
            self.calls.append(call)
            self.times.append(self.seconds)
        acts = self.acts.get(call)
        act = acts.pop(0) if acts else None
        if isinstance(act, Exception):
            raise act
        return await act() if callable(act) else act

    async def sync_pod(self, context: SyncContext, update_type: UpdateType, a_pod: Any, status: PodStatus) -> bool:
        return bool(await self._do("sync"))

    async def sync_terminating_pod(
        self, a_pod: Any, status: PodStatus, grace_period: int | None, status_func: Any, cause_id: str
    ) -> None:
        await self._do(f"terminating {grace_period}")

    async def sync_terminating_runtime_pod(self, running_pod: RunningPod, cause_id: str) -> None:
        await self._do("terminating in the runtime")

    async def sync_terminated_pod(self, a_pod: Any, status: PodStatus, cause_id: str) -> None:
        await self._do("terminated")

    async def handed_over(self, uid: str) -> None:
        await self._do("handed over")

    # -- records and Events

    def record(self, kind: Any, **more: Any) -> str:
        return ""

    def event(self, obj: Any, event_type: str, reason: str, message: str, **more: Any) -> None:
        self.events.append((reason, message))


def on_node(scenario: Callable[[Kubelet], Awaitable[None]]) -> Kubelet:
    async def main(world: World) -> Kubelet:
        async with Tasks() as tasks:
            kubelet = Kubelet(world, tasks)
            await scenario(kubelet)
            tasks.cancel()
        return kubelet

    return run_virtual(main)


def test_the_status_of_one_step_is_on_its_way_before_the_next_step_begins() -> None:
    """kubelet.go: the status manager has a goroutine of its own, which sends while volumes are unmounted."""

    async def scenario(kubelet: Kubelet) -> None:
        kubelet.update(pod(), UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)
        kubelet.update(deleted(pod(), 5))
        await kubelet.world.clock.sleep(1)
        assert kubelet.workers.state_of("uid-p") is State.FINISHED

    kubelet = on_node(scenario)
    assert kubelet.calls == ["sync", "terminating 5", "handed over", "terminated"]


def test_a_pod_that_has_ended_by_itself_goes_on_at_once_to_its_end() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        kubelet.acts["sync"] = [False, True]
        kubelet.update(pod(), UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)
        assert [60 <= each <= 90 for each in kubelet.requeued] == [True], "a Pod that runs is looked at in a minute"
        kubelet.update(pod(), UpdateType.SYNC)
        await kubelet.world.clock.sleep(1)

    kubelet = on_node(scenario)
    assert kubelet.calls == ["sync", "sync", "handed over", "terminating None", "handed over", "terminated"]
    assert kubelet.times[1:] == pytest.approx([1.0] * 5)
    assert len(kubelet.requeued) == 1, "what follows at once is not asked for again"


def test_a_pod_that_only_the_runtime_knows_is_stopped_and_forgotten() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        options = UpdatePodOptions(UpdateType.KILL, running_pod=RunningPod("uid-p", "p", "n"))
        kubelet.workers.update_pod(options)
        await kubelet.world.clock.sleep(1)
        assert kubelet.workers.known_uids() == []

    assert on_node(scenario).calls == ["terminating in the runtime"]


def test_a_stop_that_fails_is_tried_again_and_the_teardown_waits_for_it() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        kubelet.acts["terminating 30"] = [OSError("busy")]
        kubelet.update(deleted(pod()), UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)
        assert kubelet.calls == ["terminating 30"]
        (delay,) = kubelet.requeued
        assert 10 <= delay <= 15, "pod_workers.go:backOffPeriod, and up to half of it more"
        kubelet.update(deleted(pod()), UpdateType.SYNC)
        await kubelet.world.clock.sleep(1)

    assert on_node(scenario).calls == ["terminating 30", "terminating 30", "handed over", "terminated"]


def failing(kubelet: Kubelet, times: int) -> dict[str, Any]:
    kubelet.acts["sync"] = [OSError("busy")] * times
    return pod()


def test_a_call_that_keeps_failing_is_repeated_once_a_second_however_many_runtime_events_come() -> None:
    """pleg/generic.go looks at the runtime once a second."""

    async def scenario(kubelet: Kubelet) -> None:
        a_pod = failing(kubelet, 100)
        kubelet.update(a_pod, UpdateType.CREATE)
        for _ in range(35):
            await kubelet.world.clock.sleep(0.1)
            kubelet.update(a_pod, UpdateType.SYNC)
        await kubelet.world.clock.sleep(0.01)

    times = on_node(scenario).times
    assert times == pytest.approx([0.0, 0.1, 1.1, 2.1, 3.1], abs=0.01)


def test_the_next_look_after_a_runtime_event_that_was_put_off_comes_when_the_second_is_over() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        a_pod = failing(kubelet, 100)
        kubelet.update(a_pod, UpdateType.CREATE)
        await kubelet.world.clock.sleep(0.001)
        kubelet.update(a_pod, UpdateType.SYNC)
        await kubelet.world.clock.sleep(0.25)
        kubelet.requeued.clear()
        kubelet.update(a_pod, UpdateType.SYNC)
        assert kubelet.requeued == pytest.approx([0.75])

    assert len(on_node(scenario).calls) == 2


@pytest.mark.parametrize("news", ["the Pod has changed", "the Pod is deleted", "the call succeeded meanwhile"])
def test_news_of_a_pod_whose_calls_fail_is_never_put_off(news: str) -> None:
    async def scenario(kubelet: Kubelet) -> None:
        a_pod = failing(kubelet, 3 if news != "the call succeeded meanwhile" else 2)
        kubelet.update(a_pod, UpdateType.CREATE)
        for update_type in (UpdateType.SYNC, UpdateType.UPDATE):
            await kubelet.world.clock.sleep(0.001)
            kubelet.update(a_pod, update_type)
        await kubelet.world.clock.sleep(0.001)
        kubelet.calls.clear()
        if news == "the Pod has changed":
            kubelet.update(pod(labels={"a": "b"}), UpdateType.SYNC)
        elif news == "the Pod is deleted":
            kubelet.update(deleted(a_pod), UpdateType.SYNC)
        else:
            kubelet.update(a_pod, UpdateType.SYNC)
        await kubelet.world.clock.sleep(0.001)

    assert on_node(scenario).calls[0] == ("terminating 30" if news == "the Pod is deleted" else "sync")


def test_a_status_that_cannot_be_read_is_an_event_and_the_call_is_tried_again() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        kubelet.acts["get_newer_than"] = [OSError("the runtime is gone")]
        kubelet.update(pod(), UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)
        assert kubelet.calls == []

    kubelet = on_node(scenario)
    assert kubelet.events == [("FailedSync", "error determining status: the runtime is gone")]
    assert len(kubelet.requeued) == 1


@pytest.mark.parametrize(("own", "asked", "most"), [(30, None, 45), (30, 8, 12), (30, 2, 10), (7, None, 10)])
def test_a_kill_waits_for_half_more_than_the_grace_period_and_at_least_ten_seconds(
    own: int, asked: int | None, most: int
) -> None:
    """pod_workers.go:killPodNow: minTimeout, and the timeout that it is compared with."""

    async def scenario(kubelet: Kubelet) -> None:
        a_pod = pod(grace=own)

        async def hangs() -> None:
            await kubelet.world.clock.sleep(100)

        kubelet.acts[f"terminating {own if asked is None else asked}"] = [hangs]
        kubelet.update(a_pod, UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)
        began = kubelet.seconds
        with pytest.raises(TimeoutError):
            await kubelet.workers.kill_pod_now(a_pod, evict=True, grace_period=asked)
        assert kubelet.seconds - began == pytest.approx(most)

    assert on_node(scenario).events == [
        ("ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
    ]


def test_a_kill_returns_as_soon_as_no_container_runs() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        async def takes_three_seconds() -> None:
            await kubelet.world.clock.sleep(3)

        kubelet.acts["terminating 30"] = [takes_three_seconds]
        kubelet.update(pod(), UpdateType.CREATE)
        await kubelet.workers.kill_pod_now(pod(), evict=False, grace_period=None)
        assert kubelet.seconds == pytest.approx(3)

    assert on_node(scenario).events == []


def test_a_bug_in_a_worker_ends_its_turn_only_and_the_pod_is_looked_at_again_soon() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        kubelet.acts["handed over"] = [ValueError("a bug")]
        kubelet.update(deleted(pod()), UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)

    with crash_guard.installed() as faults:
        kubelet = on_node(scenario)
    assert (kubelet.calls[-1], kubelet.requeued) == ("terminated", [2.0])
    assert [(each.component, each.key) for each in faults.all()] == [("kubelet pod worker", "uid-p")]


def test_a_bug_that_stays_is_met_later_each_time_up_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any, **more: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr(transitions, "allow_pod_start", fails)

    async def scenario(kubelet: Kubelet) -> None:
        for _ in range(7):
            kubelet.update(pod())
            await kubelet.world.clock.sleep(100)

    with crash_guard.installed():
        assert on_node(scenario).requeued == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0]


def test_an_orphan_that_runs_is_stopped_and_forgotten_by_the_sweeps() -> None:
    async def scenario(kubelet: Kubelet) -> None:
        kubelet.update(pod(), UpdateType.CREATE)
        kubelet.update(pod("stays"), UpdateType.CREATE)
        await kubelet.world.clock.sleep(1)
        assert kubelet.workers.sync_known_pods([pod("stays")]) == {
            "uid-p": State.TERMINATING,
            "uid-stays": State.SYNC,
        }
        await kubelet.world.clock.sleep(1)
        assert kubelet.workers.sync_known_pods([pod("stays")]) == {"uid-stays": State.SYNC}

    assert on_node(scenario).calls == ["sync", "sync", "terminating None", "handed over", "terminated"]
