"""One probe of one container, again and again. Source: prober/worker.go."""

# check: observes because it ran the probe

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.meta import uid_of
from lastcall.kube.cri.api import RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import Dialer, EventRecorder, ProbeResult, ProbeType
from lastcall.kube.node.pods.spec import container_field_path
from lastcall.kube.node.prober.decide import (
    INITIAL_RESULT,
    Decision,
    WorkerState,
    decide,
    find_container_status,
    probe_of,
    take_result,
)
from lastcall.kube.node.prober.probe import Probed, ProbeError, asked_port, run_probe
from lastcall.kube.node.prober.results import Results
from lastcall.kube.node.status.containers import runtime_id
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic, wait_for_event
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, Probe
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerStatus as APIContainerStatus
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.records.definitions.kubelet_start import ProbeChanged, ProbeFailing
    from lastcall.records.definitions.parts import OpenPort

MAX_TRIES = 3
"""Tries per probe when it cannot be carried out."""
_MOST_RECORDED = 16
"""Ports in one record, and records of one container that say how its probe fails."""


class Statuses(Protocol):
    def get_pod_status(self, uid: str) -> APIPodStatus | None: ...


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """What all workers of a node share."""

    world: World
    runtime: RuntimeService
    dialer: Dialer
    events: EventRecorder
    recorder: Recorder
    statuses: Statuses
    features: StatusFeatures
    started_at: float
    """Wall seconds since the epoch when this kubelet started."""


@dataclass(slots=True)
class ProbeWorker:
    """`pod` is the object at creation time and stays so (`stop` reports a deletion later)."""

    context: ProbeContext
    probe_type: ProbeType
    pod: Pod
    container: Container
    is_sidecar: bool
    results: Results
    state: WorkerState = field(default_factory=WorkerState)
    last_output: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    """How often it ended how: successful, failed, unknown (prober_probe_total)."""
    _kicked: asyncio.Event = field(default_factory=asyncio.Event)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _recorded_failures: list[ProbeFailing] = field(default_factory=list)

    @property
    def probe(self) -> Probe:
        return probe_of(self.container, self.probe_type) or {}

    @property
    def period(self) -> float:
        return max(1.0, float(self.probe.get("periodSeconds") or 10))

    def kick(self) -> None:
        """Make the worker probe at once (a readiness worker whose container is started but not ready)."""
        self._kicked.set()

    def stop(self) -> None:
        """Stop the worker: no new probe begins; one in flight ends by itself."""
        self._stopped.set()
        self._kicked.set()

    async def run(self, done: Callable[[ProbeWorker], None]) -> None:
        """Run a probe every period until stopped or there is nothing left to probe."""
        clock = self.context.world.clock
        try:
            if self._ran_before_us():
                # Many containers found at a restart must not be probed all at once.
                await self._wait(self.context.world.random.random() * self.period)
            next_tick = monotonic(clock) + self.period
            while not self._stopped.is_set() and await self._turn():
                if await self._wait(next_tick - monotonic(clock)):
                    next_tick = monotonic(clock)
                while next_tick <= monotonic(clock):
                    next_tick += self.period
        finally:
            if self.state.container_id:
                self.results.remove(runtime_id(self.state.container_id))
            done(self)

    async def _turn(self) -> bool:
        """One tick behind a wall: what fails unexpectedly is tried again at the next."""
        with crash_guard.Turn("kubelet prober", f"{uid_of(self.pod)}/{self.container['name']}/{self.probe_type}"):
            return await self._do_probe()
        return True

    async def _wait(self, seconds: float) -> bool:
        """Sleep; True when a kick ended it early."""
        if seconds <= 0 or not await wait_for_event(self.context.world.clock, self._kicked, seconds):
            return False
        self._kicked.clear()
        return True

    def _ran_before_us(self) -> bool:
        status = find_container_status(self.pod.get("status") or {}, self.container["name"])
        return status is not None and "running" in (status.get("state") or {})

    async def _do_probe(self) -> bool:
        """One tick; False when the worker has nothing to do any more."""
        context, uid = self.context, uid_of(self.pod)
        status = context.statuses.get_pod_status(uid)
        if status is None:
            return True
        if status.get("phase") in ("Succeeded", "Failed"):
            return False
        container = find_container_status(status, self.container["name"])
        if container is None:
            return True
        if not self.state.container_id and self._decide(status, container).step == "end":
            # It ended for good before this worker began. A result would cause a sync, and that the next such worker:
            # a kubelet is slowed down there by its relist each second, this one would not be.
            return False
        self._notice_container(container, uid)
        decision = self._decide(status, container)
        if decision.set_result is not None:
            self._set(decision.set_result)
        if decision.step != "probe":
            return decision.step == "skip"
        container_id = self.state.container_id
        result = await self._probe(container_id, status.get("podIP", ""))
        if result is None or self._stopped.is_set() or self.state.container_id != container_id:
            return True
        if result == "success":
            self.state.succeeded = True
        if take_result(self.probe_type, self.probe, self.state, result):
            self._set(result)
            if result == "failure" and self.probe_type == "readiness" and self.state.succeeded is False:
                await self._tell_failing(runtime_id(container_id))
        return True

    def _decide(self, status: APIPodStatus, container: APIContainerStatus) -> Decision:
        wall = self.context.world.clock.wall_ns() / 1e9
        return decide(
            self.probe_type, self.probe, self.pod, status, container, self.state, wall, is_sidecar=self.is_sidecar
        )

    def _notice_container(self, container: APIContainerStatus, uid: str) -> None:
        """A new container starts from the initial result and may be probed again."""
        api_id = container["containerID"]
        if api_id == self.state.container_id:
            return
        if self.state.container_id:
            self.results.remove(runtime_id(self.state.container_id))
        self.state.container_id = api_id
        self.state.on_hold = False
        self._recorded_failures = []
        self.state.succeeded = None if self._ran_before_us() else False
        before = self._kept_from_before(container) if self._ran_before_us() else None
        if before is None:
            self.results.set(runtime_id(api_id), INITIAL_RESULT[self.probe_type], uid)
        elif self.probe_type == "startup" and before.get("started"):
            self.results.set(runtime_id(api_id), "success", uid)  # it is not probed again: nobody else would say so

    def _kept_from_before(self, container: APIContainerStatus) -> APIContainerStatus | None:
        """The API's status of a container that ran before this kubelet: since 1.35 it counts until it is probed."""
        before = find_container_status(self.pod.get("status") or {}, self.container["name"])
        if not self.context.features.preserve_on_restart or before is None:
            return None
        return before if before.get("containerID") == container["containerID"] else None

    def _set(self, result: ProbeResult) -> None:
        uid, container_id = uid_of(self.pod), runtime_id(self.state.container_id)
        if not container_id:
            return
        if self.results.get(container_id) != result:
            facts: ProbeChanged = {
                "probe": self.probe_type,
                "result": result,
                "output": self.last_output,
                "port": asked_port(self.probe, self.container),
            }
            if result == "failure":
                facts["succeededBefore"] = self.state.succeeded
            self.context.recorder.record(
                kinds.PROBE_CHANGED,
                pod_uid=uid,
                container=self.container["name"],
                rule=rules.DO_PROBE,
                facts=facts,
            )
        self.results.set(container_id, result, uid)

    async def _tell_failing(self, container_id: str) -> None:
        """Record how a probe fails that has never succeeded: its result, failure from the first, does not change."""
        port = asked_port(self.probe, self.container)
        if port is None:
            return
        found = None
        if "connection refused" in self.last_output:
            with contextlib.suppress(RuntimeServiceError):
                found = await self.context.runtime.listeners(container_id)
        open_ports: list[OpenPort] | None = (
            None if found is None else [{"address": each.address, "port": each.port} for each in found[:_MOST_RECORDED]]
        )
        facts: ProbeFailing = {
            "probe": "readiness",
            "output": self.last_output,
            "port": port,
            "listeners": open_ports,
        }
        if facts in self._recorded_failures or len(self._recorded_failures) >= _MOST_RECORDED:
            return
        self._recorded_failures.append(facts)
        name = self.container["name"]
        self.context.recorder.record(
            kinds.PROBE_FAILING, pod_uid=uid_of(self.pod), container=name, rule=rules.DO_PROBE, facts=facts
        )

    async def _probe(self, container_id: str, pod_ip: str) -> ProbeResult | None:
        """Run the probe with up to three tries; None for a result to throw away. Source: prober/prober.go:probe."""
        title = self.probe_type.capitalize()
        error: ProbeError | None = None
        probed: Probed | None = None
        for _ in range(MAX_TRIES):
            try:
                probed = await run_probe(
                    self.probe,
                    self.container,
                    runtime_id(container_id),
                    pod_ip,
                    runtime=self.context.runtime,
                    dialer=self.context.dialer,
                    features=self.context.features,
                )
                break
            except ProbeError as caught:
                error = caught
        self._count("unknown" if probed is None else "failed" if probed.outcome == "failure" else "successful")
        if probed is None:
            if not self._stopped.is_set():
                self._event("Unhealthy", f"{title} probe errored and resulted in unknown state: {error}")
            return None
        self.last_output = probed.output
        if self._stopped.is_set():
            return None
        if probed.outcome == "warning":
            self._event("ProbeWarning", f"{title} probe warning: {probed.output}")
        if probed.outcome == "failure":
            self._event("Unhealthy", f"{title} probe failed: {probed.output}")
        return "failure" if probed.outcome == "failure" else "success"

    def _count(self, result: str) -> None:
        self.counts[result] = self.counts.get(result, 0) + 1

    def _event(self, reason: str, message: str) -> None:
        path = container_field_path(self.pod, self.container["name"])
        self.context.events.event(self.pod, "Warning", reason, message, field_path=path)
