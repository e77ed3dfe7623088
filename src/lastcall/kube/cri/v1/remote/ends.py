"""Record how containers of another runtime start, stop and end, for the stories.

What the witness sees it records itself. Where there is none, or where it came too late, the status tells: such records
are `inferred`. What StopContainer does is CRI's promise: the stop signal, the timeout, SIGKILL.
"""

from typing import TYPE_CHECKING

from lastcall.kube.api.text.times import from_unix
from lastcall.kube.cri.api import ContainerState, ContainerStatus, PodSandboxStatus, TCPListener
from lastcall.kube.cri.sandbox.shim.procfs import signal_number
from lastcall.kube.cri.v1.remote.witness import Witness
from lastcall.kube.cri.v1.translate.task import Task
from lastcall.kube.cri.v1.witness import messages
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.clock import Clock, rfc3339

if TYPE_CHECKING:
    from lastcall.records.definitions.client import NotShown
    from lastcall.records.definitions.runtime import PauseEnded, ProcessExited, ProcessStarted, SignalSent

POD_UID_LABEL = "io.kubernetes.pod.uid"
NEVER_STARTED = ("StartError", "ContainerCannotRun")
SIGKILL_EXIT = 137
OTHER_SENDERS = "Who else sent signals is not known: neither the container runtime nor the kernel says who sends one."
NOT_SEEN = (
    "What PID 1 did with its stop signal, who else sent signals, which processes were left, and what was printed: the "
    "container runtime does not tell."
)
"""Where no witness saw the container."""
TOO_SOON = "What ran in it and who sent signals is not known: it ended before its processes could be looked at."


class EndsFromStatus:
    """`lastcall.kube.cri.v1.remote.runtime.Watcher` that writes records, each once."""

    def __init__(self, recorder: Recorder, clock: Clock, witness: Witness | None = None) -> None:
        """`witness` None: nobody sees the processes."""
        self._recorder, self._clock, self._witness = recorder, clock, witness
        self._recorded: set[str] = set()
        self._stops: dict[str, tuple[int, int]] = {}
        """Container → when (Unix ns) its first StopContainer began, and the timeout of that in seconds."""

    def watches(self, container_id: str) -> bool:
        """Return whether the witness knows it, or need not."""
        return self._witness is None or self._witness.watches(container_id)

    async def started(self, status: ContainerStatus, task: Task, log: str) -> None:
        """Note a container that this node has started. `log` is the path of its log for the machine."""
        if await self._watch(status, task, log, known=False):
            return
        facts: ProcessStarted = {"containerId": status.id, "exe": None, "argv": list(task.argv)}
        self._recorder.record(
            kinds.PROCESS_STARTED,
            pod_uid=_uid(status),
            container=status.metadata.name,
            facts=facts,
            evidence="inferred",
        )

    async def running(self, status: ContainerStatus, task: Task, log: str) -> None:
        """Note a container that was found running: an earlier process of this node has started it."""
        await self._watch(status, task, log, known=True)

    async def _watch(self, status: ContainerStatus, task: Task, log: str, *, known: bool) -> bool:
        if self._witness is None:
            return False
        message = messages.Watch(
            id=status.id,
            pod_uid=_uid(status),
            name=status.metadata.name,
            attempt=status.metadata.attempt,
            pid=task.pid,
            log=log,
            argv=list(task.argv),
            known=known,
        )
        return await self._witness.watch(message)

    async def stopping(self, status: ContainerStatus, signal: str, timeout: int) -> None:
        """Note that StopContainer is about to be called; `signal` is what it sends ("" if that is not known)."""
        if status.state != ContainerState.CONTAINER_RUNNING:
            return
        number = _number(signal)
        if self._witness is not None and await self._witness.stopping(status.id, number, timeout):
            return
        if status.id not in self._stops:
            self._stops[status.id] = (self._clock.wall_ns(), timeout)
            self._sent(status, (signal or "SIGTERM") if timeout > 0 else "SIGKILL", "StopContainer")

    async def ended(self, status: ContainerStatus) -> None:
        """Note a container whose status was read anew, and that has ended."""
        if not status.started_at or status.id in self._recorded or status.reason in NEVER_STARTED:
            return
        self._recorded.add(status.id)
        code, oom_killed = status.exit_code, status.reason == "OOMKilled"
        if self._witness is not None and await self._witness.ended(status.id, code, oom_killed=oom_killed):
            self._not_seen(_uid(status), OTHER_SENDERS)
            return
        began, timeout = self._stops.pop(status.id, (0, 0))
        if timeout > 0 and code == SIGKILL_EXIT and status.finished_at >= began + timeout * 1_000_000_000:
            self._sent(status, "SIGKILL", "grace over")
        facts: ProcessExited = {
            "containerId": status.id,
            "exitCode": code,
            "signal": "SIGKILL" if code == SIGKILL_EXIT else None,
            "oomKilled": oom_killed,
            "finishedAt": rfc3339(from_unix(status.finished_at / 1e9)),
        }
        self._recorder.record(
            kinds.PROCESS_EXITED,
            pod_uid=_uid(status),
            container=status.metadata.name,
            facts=facts,
            evidence="inferred",
        )
        missed = self._witness is not None and self._witness.watches(status.id)
        self._not_seen(_uid(status), TOO_SOON if missed else NOT_SEEN)

    async def listeners(self, container_id: str) -> tuple[TCPListener, ...] | None:
        """Return who listens in a running container; None when nobody can look."""
        found = None if self._witness is None else await self._witness.listeners(container_id)
        return None if found is None else tuple(TCPListener(*each) for each in found)

    def sandbox_ended(self, status: PodSandboxStatus, seconds: float) -> None:
        """Note a sandbox that ended though this node did not stop it; it was seen ready `seconds` ago.

        Its state follows its pause process. Where the containers share the PID namespace of that one, the kernel kills
        them when it ends. CRI says neither how nor when it ended.
        """
        if status.namespace_options.pid == "POD":
            facts: PauseEnded = {"secondsBefore": seconds}
            uid = status.metadata.uid
            self._recorder.record(kinds.PAUSE_ENDED, pod_uid=uid, facts=facts, evidence="inferred")

    async def removed(self, container_id: str) -> None:
        if self._witness is not None:
            await self._witness.forget(container_id)

    def _not_seen(self, pod_uid: str, text: str) -> None:
        if (key := f"{pod_uid} {text}") not in self._recorded:
            self._recorded.add(key)
            facts: NotShown = {"text": text, "why": "api"}
            self._recorder.record(kinds.NOT_SHOWN, pod_uid=pod_uid, facts=facts, evidence="inferred")

    def _sent(self, status: ContainerStatus, signal: str, why: str) -> None:
        facts: SignalSent = {"signal": signal, "why": why}
        self._recorder.record(
            kinds.SIGNAL_SENT,
            pod_uid=_uid(status),
            container=status.metadata.name,
            rule=rules.STOP_CONTAINER,
            facts=facts,
            evidence="inferred",
        )


def _uid(status: ContainerStatus) -> str:
    return status.labels.get(POD_UID_LABEL, "")


def _number(signal: str) -> int:
    """The number of a stop signal; that of SIGTERM for what no kernel has (containerd does not start such a one)."""
    try:
        return signal_number(signal or "SIGTERM")
    except ValueError:
        return signal_number("SIGTERM")
