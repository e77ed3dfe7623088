"""What two states of an EndpointSlice say of the Pods in it. Pure."""

# check: pure

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lastcall.kube.api import Object, labels_of, name_of
from lastcall.records import kinds, rules
from lastcall.trace.drafts import Draft, draft

if TYPE_CHECKING:
    from lastcall.records.definitions.endpointslice_controller import EndpointChanged, EndpointRemoved

ACTOR = "endpointslice-controller"


class Endpoint(NamedTuple):
    """A Pod's place in a slice. (`EndpointConditions`: nil ready means true, nil serving what ready says)"""

    pod_uid: str
    ready: bool
    serving: bool
    terminating: bool


def endpoints_of(obj: Object) -> dict[str, Endpoint]:
    """Map each address to the Pod behind it."""
    found = {}
    for each in obj.get("endpoints") or ():
        target = each.get("targetRef") or {}
        if target.get("kind") != "Pod" or not target.get("uid"):
            continue
        conditions = each.get("conditions") or {}
        ready = conditions.get("ready") is not False
        serving = conditions.get("serving")
        endpoint = Endpoint(
            str(target["uid"]), ready, ready if serving is None else bool(serving), bool(conditions.get("terminating"))
        )
        for address in each.get("addresses") or ():
            found[str(address)] = endpoint
    return found


def service_of(obj: Object) -> str:
    return labels_of(obj).get("kubernetes.io/service-name") or name_of(obj)


def changes(
    service: str, name: str, version: str, old: dict[str, Endpoint], new: dict[str, Endpoint]
) -> Iterator[tuple[str, Draft]]:
    """Yield (uid of the Pod, what became of its endpoint)."""
    for address, endpoint in new.items():
        if old.get(address) != endpoint:
            yield endpoint.pod_uid, _changed(service, name, version, address, endpoint)
    for address, endpoint in old.items():
        there = new.get(address)
        if there is None or there.pod_uid != endpoint.pod_uid:
            gone: EndpointRemoved = {
                "service": service,
                "slice": name,
                "resourceVersion": version,
                "address": address,
                "observedResourceVersion": "",
            }
            yield endpoint.pod_uid, draft(kinds.ENDPOINT_REMOVED, gone, ACTOR, rule=rules.SHOULD_POD_BE_IN_ENDPOINTS)


def _changed(service: str, name: str, version: str, address: str, endpoint: Endpoint) -> Draft:
    facts: EndpointChanged = {
        "service": service,
        "slice": name,
        "resourceVersion": version,
        "address": address,
        "observedResourceVersion": "",
        "ready": endpoint.ready,
        "serving": endpoint.serving,
        "terminating": endpoint.terminating,
    }
    return draft(kinds.ENDPOINT_CHANGED, facts, ACTOR, rule=rules.POD_TO_ENDPOINT)
