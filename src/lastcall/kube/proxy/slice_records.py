"""The proxy's part of the story: which endpoint changes it saw, and when the kernel went by them."""

# check: observes because it saw the watch events and wrote the rules

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import resource_version_of
from lastcall.kube.proxy.services import ServiceKey
from lastcall.records import rules
from lastcall.records.kinds import ENDPOINT_CHANGE_SEEN, ENDPOINT_RULES_WRITTEN
from lastcall.records.record import Recorder
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.service import EndpointSlice
    from lastcall.records.definitions.kube_proxy import EndpointChangeSeen, EndpointRulesWritten
    from lastcall.records.definitions.parts import EndpointConditions


_Conditions = tuple[bool, bool, bool]


@dataclass(frozen=True, slots=True)
class SeenChange:
    """A change of one endpoint that waits for its rules. `at` in seconds, monotonic."""

    record_id: str
    pod_uid: str
    address: str
    conditions: _Conditions | None
    at: float


class SliceRecords:
    """Writes the records of one node's proxy."""

    def __init__(self, world: World, recorder: Recorder, node: str) -> None:
        self._world = world
        self._recorder = recorder
        self._node = node
        self._slices: dict[tuple[str, str], EndpointSlice] = {}

    def seen(self, service: ServiceKey | None, name: tuple[str, str], slice_: EndpointSlice | None) -> list[SeenChange]:
        """Note a slice (None: it is gone); write a record for each endpoint of a Pod that changed in it.

        `service` None: nobody serves it, so there is nothing to record.
        """
        before = self._slices.pop(name, None)
        if slice_ is not None:
            self._slices[name] = slice_
        if service is None:
            return []
        old, new = _endpoints(before), _endpoints(slice_)
        version = resource_version_of(slice_ if slice_ is not None else before or {"metadata": {}})
        changes = []
        for (uid, address), conditions in new.items():
            if old.get((uid, address)) != conditions:
                ready, serving, terminating = conditions
                facts: EndpointConditions = {"ready": ready, "serving": serving, "terminating": terminating}
                changes.append(self._seen(service, name[1], uid, address, conditions, version, facts))
        for uid, address in old:
            if (uid, address) not in new:
                changes.append(self._seen(service, name[1], uid, address, None, version, {"removed": True}))
        return changes

    def _seen(
        self,
        service: ServiceKey,
        slice_name: str,
        uid: str,
        address: str,
        conditions: _Conditions | None,
        version: str,
        change: EndpointConditions,
    ) -> SeenChange:
        facts: EndpointChangeSeen = {
            "node": self._node,
            "service": service[1],
            "slice": slice_name,
            "address": address,
            **change,
            "observedResourceVersion": version,
        }
        record_id = self._recorder.record(
            ENDPOINT_CHANGE_SEEN, pod_uid=uid, rule=rules.ON_ENDPOINT_SLICE_UPDATE, facts=facts
        )
        return SeenChange(record_id, uid, address, conditions, monotonic(self._world.clock))

    def written(
        self, service: ServiceKey, changes: Iterable[SeenChange], before: Iterable[str], now: Iterable[str]
    ) -> None:
        """Record that the kernel has these changes; `before` and `now`: addresses that got and get new connections."""
        got, gets = frozenset(before), frozenset(now)
        for change in changes:
            ready = change.conditions is not None and change.conditions[0]
            facts: EndpointRulesWritten = {
                "node": self._node,
                "service": service[1],
                "address": change.address,
                "received": change.address in got,
                "receives": change.address in gets,
                "ready": ready,
                "seconds": round(monotonic(self._world.clock) - change.at, 6),
            }
            self._recorder.record(
                ENDPOINT_RULES_WRITTEN,
                pod_uid=change.pod_uid,
                rule=rules.CATEGORIZE_ENDPOINTS,
                facts=facts,
                cause_id=change.record_id,
            )


def _endpoints(slice_: EndpointSlice | None) -> dict[tuple[str, str], _Conditions]:
    """(Pod uid, address) → ready, serving, terminating; endpoints that are not Pods have no story."""
    found: dict[tuple[str, str], _Conditions] = {}
    for endpoint in (slice_ or {}).get("endpoints") or ():
        uid = (endpoint.get("targetRef") or {}).get("uid")
        if not uid or not endpoint.get("addresses"):
            continue
        conditions = endpoint.get("conditions") or {}
        found[uid, endpoint["addresses"][0]] = (
            conditions.get("ready") is not False,
            conditions.get("serving") is not False,
            bool(conditions.get("terminating")),
        )
    return found
