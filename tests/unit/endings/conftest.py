"""Hand-made record sequences: what the processes of a cluster write while a Pod ends."""

from collections.abc import Callable
from typing import Any

import pytest
from scenario.translation import what_is_made_can_be_told_in_japanese  # noqa: F401 (a fixture of every test here)

from lastcall.endings.ending import build_endings
from lastcall.endings.story import ContainerFacts, Ending, PodFacts
from lastcall.records import kinds as k
from lastcall.records.record import Evidence, Record

ZERO_NS = 1_000_000_000_000
WALL_NS = 1_900_000_000_000_000_000
UID = "11111111-2222-4333-8444-555555555555"
WORKERS = "pkg/kubelet/pod_workers.go"
KILL = "pkg/kubelet/kuberuntime/kuberuntime_container.go"
STOP = "containerd internal/cri/server/container_stop.go:stopContainer"


class Tape:
    """Records of one Pod; `at` is seconds since the DELETE was accepted."""

    def __init__(self, name: str = "web", uid: str = UID, version: str = "1.36") -> None:
        self.uid = uid
        self.version = version
        self.pod = PodFacts(uid, "default", name, "node-1", "Succeeded", (ContainerFacts("app", pre_stop="exec"),))
        self.records: list[Record] = []

    def add(
        self,
        at: float,
        actor: str,
        kind: str,
        container: str = "",
        rule: str = "",
        cause_id: str = "",
        evidence: Evidence = "observed",
        **facts: Any,
    ) -> str:
        offset = round(at * 1e9)
        record_id = f"{actor}-b-{len(self.records) + 1}"
        uid = "" if kind in (k.PROCESS_DIED, k.PROCESS_RESTARTED) else self.uid
        self.records.append(
            Record(
                record_id,
                ZERO_NS + offset,
                WALL_NS + offset,
                actor,
                kind,
                uid,
                container,
                rule,
                facts,
                cause_id,
                evidence,
            )
        )
        return record_id

    def started(
        self, container: str = "app", pid: int = 7, at: float = -2.0, argv: tuple[str, ...] = ("sh", "-c")
    ) -> None:
        self.add(
            at, "runtime", k.PROCESS_STARTED, container, pid=pid, containerPid=1, exe="/bin/busybox", argv=list(argv)
        )

    def accepted(self, grace: int = 30) -> None:
        self.add(-0.002, "client", k.DELETE_SENT, gracePeriodSeconds=None)
        self.add(
            0.0,
            "apiserver",
            k.DELETE_ACCEPTED,
            rule="staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go:BeforeDelete",
            user="kubernetes-admin",
            gracePeriodSeconds=grace,
            resourceVersion="143",
        )

    def endpoint(self, at: float = 0.004) -> None:
        self.add(
            at,
            "endpointslice-controller",
            k.ENDPOINT_CHANGED,
            rule="staging/src/k8s.io/endpointslice/utils.go:podToEndpoint",
            service="web",
            slice="web-x7f2k",
            address="10.244.0.2",
            ready=False,
            serving=True,
            terminating=True,
            resourceVersion="144",
            observedResourceVersion="143",
        )

    def observed(self, grace: int = 30, at: float = 0.003) -> str:
        seen = self.add(
            at,
            "kubelet",
            k.TERMINATION_OBSERVED,
            rule=f"{WORKERS}:UpdatePod",
            cause="deletionTimestamp",
            gracePeriodSeconds=grace,
            observedResourceVersion="143",
        )
        return self.add(
            at,
            "kubelet",
            k.GRACE_DECIDED,
            rule=f"{WORKERS}:calculateEffectiveGracePeriod",
            cause_id=seen,
            gracePeriodSeconds=grace,
            shortened=False,
            why="the least of the deletion grace period and any override",
        )

    def killing(self, grace: int, container: str = "app", at: float = 0.005, cause_id: str = "") -> None:
        message = f"Stopping container {container}"
        self.add(
            at,
            "kubelet",
            k.KILLING,
            container,
            f"{KILL}:killContainer",
            cause_id,
            message=message,
            gracePeriodSeconds=grace,
        )

    def hook(
        self,
        start: float,
        seconds: float,
        outcome: str = "succeeded",
        container: str = "app",
        budget: int = 30,
        **facts: Any,
    ) -> None:
        rule = f"{KILL}:executePreStopHook"
        handler = facts.pop("handler", "exec")
        detail = facts.pop("command", 'sh -c "sleep 3"')
        self.add(
            start, "kubelet", k.PRE_STOP_STARTED, container, rule, handler=handler, detail=detail, budgetSeconds=budget
        )
        self.add(
            start + seconds,
            "kubelet",
            k.PRE_STOP_FINISHED,
            container,
            "pkg/kubelet/lifecycle/handlers.go:Run",
            handler=handler,
            outcome=outcome,
            seconds=seconds,
            **facts,
        )

    def stop(
        self,
        at: float,
        timeout: int,
        deducted: int = 0,
        container: str = "app",
        pid: int = 7,
        disposition: str = "handled",
        floor: bool = False,
    ) -> None:
        self.add(
            at,
            "kubelet",
            k.STOP_REQUESTED,
            container,
            f"{KILL}:killContainer",
            timeoutSeconds=timeout,
            floor=floor,
            deductedSeconds=deducted,
        )
        self.add(
            at + 0.001,
            "runtime",
            k.PROCESS_SIGNAL_STATE,
            container,
            pid=pid,
            exe="/bin/busybox",
            signal="SIGTERM",
            disposition=disposition,
            caught=["SIGTERM"] if disposition == "handled" else [],
            ignored=[],
            blocked=[],
        )
        self.signal(at + 0.002, "SIGTERM", "StopContainer", container, pid)

    def signal(self, at: float, name: str, why: str, container: str = "app", pid: int = 7) -> None:
        self.add(at, "runtime", k.SIGNAL_SENT, container, STOP, signal=name, pid=pid, containerPid=1, why=why)

    def exit(
        self, at: float, code: int, signal: str | None = None, container: str = "app", pid: int = 7, oom: bool = False
    ) -> None:
        facts = {"containerId": "c" * 8, "pid": pid, "exitCode": code, "signal": signal, "oomKilled": oom}
        self.add(at, "runtime", k.PROCESS_EXITED, container, **facts)

    def output(self, at: float, text: str, container: str = "app") -> None:
        self.add(at, "runtime", k.OUTPUT, container, stream="stdout", text=text, attempt=0)

    def over(self, at: float, phase: str = "Succeeded", endpoint: bool = True) -> None:
        """What follows the last exit: 9 ms from here to the object's end."""
        self.add(at + 0.001, "runtime", k.NETWORK_DETACHED, ip="10.244.0.2", seconds=0.0004, error="")
        self.add(
            at + 0.002,
            "kubelet",
            k.SANDBOX_STOPPED,
            rule="pkg/kubelet/kuberuntime/kuberuntime_manager.go:killPodWithSyncResult",
            sandboxId="s",
            seconds=0.0012,
        )
        self.add(at + 0.004, "kubelet", k.VOLUMES_UNMOUNTED, volumes=["kube-api-access-x"], seconds=0.0006)
        facts = {"phase": phase, "ready": False, "reason": "", "resourceVersion": "150"}
        self.add(at + 0.005, "apiserver", k.POD_STATUS_WRITTEN, **facts)
        if endpoint:
            self.add(
                at + 0.006,
                "endpointslice-controller",
                k.ENDPOINT_REMOVED,
                service="web",
                slice="web-x7f2k",
                address="10.244.0.2",
                resourceVersion="151",
                observedResourceVersion="150",
            )
        rule = "pkg/kubelet/status/status_manager.go:canBeDeleted"
        self.add(at + 0.007, "kubelet", k.FINAL_DELETE_SENT, rule=rule, uid=self.uid)
        self.add(at + 0.008, "apiserver", k.OBJECT_REMOVED, resourceVersion="152", user="system:node:node-1")
        self.add(at + 0.009, "client", k.POD_GONE_SEEN, resourceVersion="152")

    def ending(self) -> Ending:
        return build_endings(self.records, [self.pod], kubernetes_version=self.version)[0]


def graceful() -> Tape:
    """Demo (a) at 1.36: hook 3 s, the shell's trap waits for `sleep 1`, drains 5 s, exits 0."""
    tape = Tape("term-demo")
    tape.started()
    tape.accepted(30)
    tape.observed(30)
    tape.endpoint()
    tape.killing(30)
    tape.hook(0.006, 3.004, stdout="", stderr="", exitCode=0)
    tape.stop(3.011, 27, deducted=3)
    tape.output(3.6, "SIGTERM received, draining...")
    tape.exit(8.61, 0)
    tape.over(8.611)
    return tape


def sigkill(version: str = "1.36") -> Tape:
    """Demo (b): grace 10, hook 2 s, TERM is caught and nothing comes of it."""
    tape = Tape("sigkill-demo", version=version)
    deducted, timeout = (2, 8) if version == "1.36" else (0, 10)
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    tape.endpoint()
    tape.killing(10)
    tape.hook(0.006, 2.003, budget=10, stdout="", stderr="", exitCode=0)
    tape.stop(2.01, timeout, deducted=deducted)
    tape.output(2.7, "SIGTERM received, ignoring it")
    end = 2.012 + timeout
    tape.signal(end, "SIGKILL", "grace over")
    tape.exit(end + 0.001, 137, "SIGKILL")
    tape.over(end + 0.002, "Failed")
    return tape


TAPES: dict[str, Callable[[], Tape]] = {
    "graceful": graceful,
    "sigkill-1.36": sigkill,
    "sigkill-1.23": lambda: sigkill("1.23"),
}


@pytest.fixture
def tapes() -> dict[str, Callable[[], Tape]]:
    """Ready-made sequences by name."""
    return TAPES


@pytest.fixture
def new_tape() -> type[Tape]:
    """Make your own."""
    return Tape
