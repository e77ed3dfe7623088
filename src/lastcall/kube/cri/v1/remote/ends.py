"""Record how containers of another runtime ended, from their status, for the stories.

What StopContainer does is CRI's promise: the stop signal, the timeout, SIGKILL. Records of it are `inferred`. Who else
sent a signal, what a process did with it, what it printed and which processes were left nobody saw: no record says so.
"""

from typing import TYPE_CHECKING

from lastcall.kube.api.text.times import from_unix
from lastcall.kube.cri.api import ContainerState, ContainerStatus
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import Clock, monotonic, rfc3339

if TYPE_CHECKING:
    from lastcall.records.definitions.client import NotShown
    from lastcall.records.definitions.runtime import ProcessExited, SignalSent

POD_UID_LABEL = "io.kubernetes.pod.uid"
NEVER_STARTED = ("StartError", "ContainerCannotRun")
SIGKILL_EXIT = 137
NOT_SEEN = (
    "What PID 1 did with its stop signal, who else sent signals, which processes were left, and what was printed: the "
    "container runtime does not tell."
)


class EndsFromStatus:
    """`lastcall.kube.cri.v1.remote.runtime.Watcher` that writes records, each once."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder, self._clock = recorder, clock
        self._recorded: set[str] = set()
        self._stops: dict[str, tuple[float, int]] = {}
        """Container → when its first StopContainer began, and the timeout of that."""

    def stopping(self, status: ContainerStatus, timeout: int) -> None:
        """StopContainer is about to be called."""
        if status.state != ContainerState.CONTAINER_RUNNING or status.id in self._stops:
            return
        self._stops[status.id] = (monotonic(self._clock), timeout)
        self._sent(status, (status.stop_signal or "SIGTERM") if timeout > 0 else "SIGKILL", "StopContainer")

    def stopped(self, status: ContainerStatus) -> None:
        """It has been answered with success: the container has ended, and after its timeout by SIGKILL."""
        began, timeout = self._stops.get(status.id, (0.0, 0))
        if timeout > 0 and monotonic(self._clock) - began >= timeout:
            self._sent(status, "SIGKILL", "grace over")

    def container(self, status: ContainerStatus) -> None:
        """Its status was read anew."""
        if status.state != ContainerState.CONTAINER_EXITED or not status.started_at or status.id in self._recorded:
            return
        if status.reason in NEVER_STARTED:
            return
        self._recorded.add(status.id)
        self._stops.pop(status.id, None)
        facts: ProcessExited = {
            "containerId": status.id,
            "exitCode": status.exit_code,
            "signal": "SIGKILL" if status.exit_code == SIGKILL_EXIT else None,
            "oomKilled": status.reason == "OOMKilled",
            "finishedAt": rfc3339(from_unix(status.finished_at / 1e9)),
        }
        self._recorder.record(
            kinds.PROCESS_EXITED,
            pod_uid=status.labels.get(POD_UID_LABEL, ""),
            container=status.metadata.name,
            facts=facts,
            evidence="inferred",
        )
        self._not_seen(status.labels.get(POD_UID_LABEL, ""))

    def _not_seen(self, pod_uid: str) -> None:
        if pod_uid not in self._recorded:
            self._recorded.add(pod_uid)
            facts: NotShown = {"text": NOT_SEEN, "why": "api"}
            self._recorder.record(kinds.NOT_SHOWN, pod_uid=pod_uid, facts=facts, evidence="inferred")

    def _sent(self, status: ContainerStatus, signal: str, why: str) -> None:
        facts: SignalSent = {"signal": signal, "why": why}
        self._recorder.record(
            kinds.SIGNAL_SENT,
            pod_uid=status.labels.get(POD_UID_LABEL, ""),
            container=status.metadata.name,
            rule=rules.STOP_CONTAINER,
            facts=facts,
            evidence="inferred",
        )
