"""The latest probe result of each container. Source: prober/results/results_manager.go."""

from collections.abc import Callable

from lastcall.kube.node.interfaces import ProbeResult, ProbeType

Changed = Callable[[ProbeType, str, str, ProbeResult], None]
"""(probe type, pod uid, runtime's container id, result)."""


class Results:
    """Results of one probe type; `changed` hears every result that differs from the one before."""

    def __init__(self, probe_type: ProbeType, changed: Changed) -> None:
        self._probe_type = probe_type
        self._changed = changed
        self._results: dict[str, ProbeResult] = {}

    def get(self, container_id: str) -> ProbeResult | None:
        return self._results.get(container_id)

    def set(self, container_id: str, result: ProbeResult, pod_uid: str) -> None:
        if self._results.get(container_id) != result:
            self._results[container_id] = result
            self._changed(self._probe_type, pod_uid, container_id, result)

    def remove(self, container_id: str) -> None:
        self._results.pop(container_id, None)
