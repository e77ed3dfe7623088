"""What the kubelet does for a Pod in each of its states (kubelet.go: SyncPod, SyncTerminatingPod, SyncTerminatedPod).

Every part that the syncer calls is the test's: it notes the call, and fails if the test says so.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lastcall.kube.cri.api import ContainerMetadata, ContainerState, ContainerStatus
from lastcall.kube.node.interfaces import PodStatus, VolumeError
from lastcall.kube.node.pods.runtime_pod import RunningPod
from lastcall.kube.node.runtime.resize import ResizeError
from lastcall.kube.node.stopping.kill_pod import KillPodError
from lastcall.kube.node.workers.calls import SyncCancelled, SyncContext
from lastcall.kube.node.workers.syncer import CRIViolation, KubeletPodSyncer, NetworkNotReady
from lastcall.kube.node.workers.transitions import UpdateType
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

HOOK = {"preStop": {"exec": {"command": ["true"]}}}
NOTHING = PodStatus("u", "p", "n")


def pod(*containers: Any, annotations: Any = None, **spec: Any) -> Any:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": annotations or {}},
        "spec": {"containers": list(containers) or [{"name": "app"}], **spec},
    }


def runtime(*states: tuple[str, ContainerState]) -> PodStatus:
    containers = tuple(
        ContainerStatus(f"id-{name}", ContainerMetadata(name), "s", state, "i", "i", 1) for name, state in states
    )
    return PodStatus("u", "p", "n", (), containers)


RUNNING, EXITED = ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED


class Kubelet:
    """All parts of a kubelet. `calls` has what they were asked, `fails` what they raise, by call."""

    def __init__(self, **more: Any) -> None:
        self.calls: list[Any] = []
        self.fails: dict[str, Exception] = {}
        self.status: dict[str, Any] = {"phase": "Running"}
        self.refreshed = NOTHING
        self.network = ""
        self.resizing = False
        self.syncer = KubeletPodSyncer(
            statuses=self,  # type: ignore[arg-type]
            generator=self,
            probes=self,  # type: ignore[arg-type]
            volumes=self,  # type: ignore[arg-type]
            pleg=self,  # type: ignore[arg-type]
            runtime_manager=self,  # type: ignore[arg-type]
            pod_killer=self,  # type: ignore[arg-type]
            container_killer=self,  # type: ignore[arg-type]
            events=self,  # type: ignore[arg-type]
            resizes=self,  # type: ignore[arg-type]
            reconcile_mirror=lambda a_pod: self.noted("mirror"),
            network_error=lambda: self.network,
            release_users=lambda uid: self.noted(f"release users of {uid}"),
            **{"reclaim": None, **more},
        )

    def noted(self, call: Any) -> None:
        self.calls.append(call)
        name = call if isinstance(call, str) else call[0]
        if name in self.fails:
            raise self.fails[name]

    # statuses, generator

    def set_pod_status(self, a_pod: Any, status: Any) -> None:
        self.noted(("status", status["phase"]))

    def terminate_pod(self, a_pod: Any) -> None:
        self.noted("terminate")

    async def handed_over(self, uid: str) -> None:
        self.noted("handed over")

    def generate_api_pod_status(self, a_pod: Any, pod_status: PodStatus, pod_is_terminal: bool) -> Any:
        return {**self.status, "phase": "Failed" if pod_is_terminal else self.status["phase"]}

    def forget_except(self, uids: set[str]) -> None:
        raise AssertionError

    # probes, volumes

    def add_pod(self, a_pod: Any) -> None:
        self.noted("probes")

    def stop_liveness_and_startup(self, a_pod: Any) -> None:
        self.noted("only readiness probes")

    def remove_pod(self, a_pod: Any) -> None:
        self.noted("no probes")

    async def wait_for_attach_and_mount(self, a_pod: Any) -> None:
        self.noted("mount")
        await asyncio.sleep(1)  # a second of virtual time, so that an end can begin meanwhile

    async def wait_for_unmount(self, a_pod: Any) -> None:
        self.noted("unmount")

    # runtime

    async def refresh(self, uid: str, name: str, namespace: str) -> PodStatus:
        assert (uid, name, namespace) == ("u", "p", "n")
        self.noted("look")
        return self.refreshed

    async def sync_pod(
        self, a_pod: Any, pod_status: PodStatus, *, resize: Any = None, restart_all: bool = False
    ) -> None:
        self.noted("restart all" if restart_all else "run")

    async def kill_pod_with_sync_result(
        self, a_pod: Any, running_pod: RunningPod, override: int | None, *, runtime_only: bool, cause_id: str
    ) -> None:
        names = [each.metadata.name for each in running_pod.containers]
        self.noted(("kill", names, override, runtime_only, cause_id))

    def record_skipped(self, a_pod: Any, name: str, why: str, cause_id: str) -> None:
        self.noted(("no hook", name, why, cause_id))

    def event(self, a_pod: Any, event_type: str, reason: str, message: str) -> None:
        self.noted(("event", event_type, reason, message))

    # resizes

    def allocated(self, a_pod: Any) -> Any:
        return a_pod

    def needs_a_look(self, uid: str) -> bool:
        return self.resizing

    def looked(self, a_pod: Any, *, under_way: bool) -> None:
        self.noted(("resize", under_way))

    def failed(self, a_pod: Any, message: str) -> None:
        self.noted(("resize failed", message))

    def forget(self, uid: str) -> None:
        self.noted("forget resizes")

    def retry(self) -> None:
        self.noted("retry resizes")


def sync(kubelet: Kubelet, a_pod: Any, *, cancel_after: float | None = None) -> bool:
    async def main(world: World) -> bool:
        context = SyncContext()
        if cancel_after is not None:
            asyncio.get_running_loop().call_later(cancel_after, context.cancelled.set)
        return await kubelet.syncer.sync_pod(context, UpdateType.UPDATE, a_pod, NOTHING)

    return run_virtual(main)


def stop(kubelet: Kubelet, a_pod: Any, pod_status: PodStatus, change: Callable[[Any], None] | None = None) -> None:
    run_virtual(lambda world: kubelet.syncer.sync_terminating_pod(a_pod, pod_status, 7, change, "why"))


def test_a_pod_is_mounted_probed_and_run_after_its_status_is_said() -> None:
    kubelet = Kubelet()
    assert sync(kubelet, pod()) is False
    assert kubelet.calls == [("status", "Running"), "mount", "probes", "run"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_not_run(phase: str) -> None:
    kubelet = Kubelet()
    kubelet.status = {"phase": phase}
    assert sync(kubelet, pod()) is True
    assert kubelet.calls == [("status", phase)]


def test_a_pod_waits_for_the_network_unless_it_has_the_node_s() -> None:
    text = "network is not ready: no CNI plugin"
    kubelet = Kubelet()
    kubelet.network = "no CNI plugin"
    with pytest.raises(NetworkNotReady, match=text):
        sync(kubelet, pod())
    assert kubelet.calls == [("status", "Running"), ("event", "Warning", "NetworkNotReady", text)]
    kubelet.calls.clear()
    assert sync(kubelet, pod(hostNetwork=True)) is False
    assert kubelet.calls[-1] == "run"


def test_a_static_pod_gets_its_mirror_before_its_volumes() -> None:
    kubelet = Kubelet()
    sync(kubelet, pod(annotations={"kubernetes.io/config.source": "file"}))
    assert kubelet.calls == [("status", "Running"), "mirror", "mount", "probes", "run"]


def test_volumes_that_are_missing_are_an_event_and_nothing_runs() -> None:
    kubelet = Kubelet()
    kubelet.fails["mount"] = VolumeError("unmounted volumes=[v]")
    with pytest.raises(VolumeError):
        sync(kubelet, pod())
    text = "Unable to attach or mount volumes: unmounted volumes=[v]"
    assert kubelet.calls == [("status", "Running"), "mount", ("event", "Warning", "FailedMount", text)]


def test_an_end_that_begins_interrupts_only_the_wait_for_volumes() -> None:
    kubelet = Kubelet()
    with pytest.raises(SyncCancelled):
        sync(kubelet, pod(), cancel_after=0.5)
    assert kubelet.calls == [("status", "Running"), "mount"]
    kubelet.calls.clear()
    assert sync(kubelet, pod(), cancel_after=1.5) is False
    assert kubelet.calls[-1] == "run"


def restarting(kubelet: Kubelet) -> None:
    kubelet.status["conditions"] = [{"type": "AllContainersRestarting", "status": "True"}]


def test_a_restart_of_all_containers_comes_before_they_are_started() -> None:
    kubelet = Kubelet()
    restarting(kubelet)
    assert sync(kubelet, pod()) is False
    said = ("status", "Running")
    assert kubelet.calls == [said, "mount", "probes", "restart all", "look", said, "run"]


def test_a_resize_that_fails_is_said_and_raised() -> None:
    kubelet = Kubelet()
    kubelet.fails["run"] = ResizeError("no room")
    with pytest.raises(ResizeError):
        sync(kubelet, pod())
    assert kubelet.calls[-3:] == ["run", ("resize failed", "no room"), ("status", "Running")]


def test_a_pod_that_may_have_been_resized_is_looked_at() -> None:
    kubelet = Kubelet()
    kubelet.resizing = True
    sync(kubelet, pod())
    assert kubelet.calls == [("resize", False), ("status", "Running"), "mount", "probes", "run"]


def test_a_stop_kills_says_so_and_ends_with_a_fresh_look() -> None:
    kubelet = Kubelet()
    stop(kubelet, pod(), runtime(("app", RUNNING), ("old", EXITED)))
    assert kubelet.calls[0] == ("kill", ["app"], 7, False, "why")
    assert sorted(map(str, kubelet.calls[1:3])) == ["('status', 'Running')", "only readiness probes"]
    assert kubelet.calls[3:] == ["no probes", "look", ("status", "Failed")]


def test_what_is_to_be_changed_in_the_status_is_changed_before_the_pod_terminates() -> None:
    kubelet = Kubelet()
    stop(kubelet, pod(), runtime(("app", RUNNING)), lambda status: status.update(phase="Changed"))
    assert ("status", "Changed") in kubelet.calls


def test_a_container_that_runs_after_all_were_stopped_is_an_error() -> None:
    kubelet = Kubelet()
    kubelet.refreshed = runtime(("app", RUNNING), ("b", RUNNING), ("old", EXITED))
    text = r"detected running containers after a successful KillPod, CRI violation: \[app b\]"
    with pytest.raises(CRIViolation, match=text):
        stop(kubelet, pod(), runtime(("app", RUNNING)))
    assert kubelet.calls[-1] == "look"


def test_a_kill_that_fails_is_an_event_and_raised() -> None:
    kubelet = Kubelet()
    kubelet.fails["kill"] = KillPodError(["busy"])
    with pytest.raises(KillPodError):
        stop(kubelet, pod(), runtime(("app", RUNNING)))
    assert ("event", "Warning", "FailedKillPod", "error killing pod: busy") in kubelet.calls
    assert "no probes" not in kubelet.calls


def test_a_hook_of_a_container_that_does_not_run_is_said_to_be_skipped() -> None:
    hooked = {"lifecycle": HOOK}
    containers = [{"name": name, **hooked} for name in ("ended", "runs", "never")] + [{"name": "no-hook"}]
    kubelet = Kubelet()
    stop(kubelet, pod(*containers), runtime(("ended", EXITED), ("runs", RUNNING), ("no-hook", EXITED)))
    assert [call for call in kubelet.calls if call[0] == "no hook"] == [
        ("no hook", "ended", "the container had already ended", "why"),
        ("no hook", "never", "the container never ran", "why"),
    ]


def test_a_pod_that_only_the_runtime_knows_has_a_second() -> None:
    kubelet = Kubelet()
    running = RunningPod("u", "p", "n", runtime(("app", RUNNING)).container_statuses)
    run_virtual(lambda world: kubelet.syncer.sync_terminating_runtime_pod(running, "why"))
    assert kubelet.calls == [("kill", ["app"], 1, True, "why")]


def test_a_pod_that_is_terminated_gives_back_what_it_had_before_its_last_status() -> None:
    kubelet = Kubelet()
    run_virtual(lambda world: kubelet.syncer.sync_terminated_pod(pod(), NOTHING, "why"))
    gone = ["forget resizes", "retry resizes", "unmount", "release users of u", "terminate"]
    assert kubelet.calls == [("status", "Failed"), *gone]


def test_before_1_27_a_pod_s_containers_are_removed_before_its_volumes() -> None:
    async def reclaim(uid: str) -> None:
        kubelet.noted(f"reclaim {uid}")

    kubelet = Kubelet(reclaim=reclaim)
    run_virtual(lambda world: kubelet.syncer.sync_terminated_pod(pod(), NOTHING, "why"))
    assert kubelet.calls[3:] == ["reclaim u", "unmount", "release users of u", "terminate"]


def test_a_volume_that_stays_mounted_keeps_the_pod() -> None:
    kubelet = Kubelet()
    kubelet.fails["unmount"] = OSError("busy")
    with pytest.raises(OSError, match="busy"):
        run_virtual(lambda world: kubelet.syncer.sync_terminated_pod(pod(), NOTHING, "why"))
    assert kubelet.calls[-1] == "unmount"


def test_the_status_of_a_pod_is_handed_over_by_its_manager() -> None:
    kubelet = Kubelet()
    run_virtual(lambda world: kubelet.syncer.handed_over("u"))
    assert kubelet.calls == ["handed over"]
