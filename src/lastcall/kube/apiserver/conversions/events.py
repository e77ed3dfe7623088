"""core/v1 and events.k8s.io/v1 are two versions of one Event; it is stored as core/v1.

Source: pkg/apis/events/v1/conversion.go.
"""

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import EVENTS, EVENTS_V1

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_EMPTY_IN_CORE = ("reportingComponent", "reportingInstance")
"""Written by the one version although they are empty, and not by the other."""
_BACK = {other: core for core, other in _NAMES.items()}


def to_events_v1(event: Object) -> Object:
    """Return the events.k8s.io/v1 Event of a core/v1 Event (the metadata is shared)."""
    rest = {
        _NAMES.get(key, key): value
        for key, value in event.items()
        if key not in ("kind", "apiVersion") and not (value == "" and key in _EMPTY_IN_CORE)
    }
    return {"kind": EVENTS_V1.kind, "apiVersion": EVENTS_V1.api_version, **rest}


def to_core(event: Object) -> Object:
    """Return the core/v1 Event of an events.k8s.io/v1 Event (the metadata is shared)."""
    rest = {_BACK.get(key, key): value for key, value in event.items() if key not in ("kind", "apiVersion")}
    return {"kind": EVENTS.kind, "apiVersion": EVENTS.api_version, **rest}
