"""What the simulated runtime reports: records, which all say `predicted`, and CRI's events."""

# check: predicts because what it records happened in no kernel

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Literal

from lastcall.kube.cri.api import ContainerEventResponse, ContainerEventType
from lastcall.kube.cri.simulated_objects import EventStream, Sandbox
from lastcall.records.record import Recorder
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.records.record import Facts, Kind
    from lastcall.records.rules import Rule


class Reports:
    def __init__(self, world: World, recorder: Recorder) -> None:
        self._world, self._recorder = world, recorder
        self._subscribers: dict[EventStream, None] = {}

    def record(
        self,
        kind: "Kind[Facts]",
        pod_uid: str,
        container: str = "",
        facts: "Facts | None" = None,
        *,
        rule: "Rule | Literal['']" = "",
    ) -> None:
        self._recorder.record(kind, pod_uid=pod_uid, container=container, rule=rule, facts=facts, evidence="predicted")

    def emit(self, container_id: str, kind: ContainerEventType, sandbox: Sandbox) -> None:
        event = ContainerEventResponse(container_id, kind, self._world.clock.wall_ns(), sandbox.pod_uid)
        for stream in list(self._subscribers):
            stream.put(event)

    def events(self) -> AsyncIterator[ContainerEventResponse]:
        stream = EventStream(self._subscribers)
        self._subscribers[stream] = None
        return stream

    def close(self) -> None:
        """End all streams of events."""
        for stream in list(self._subscribers):
            stream.end()
