"""Events. Source: pkg/apis/core/validation/events.go."""

from lastcall.kube.api.field import FieldError, each, invalid, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_qualified_name
from lastcall.kube.api.validators.common import internal

MAX_NAME = 128
MAX_NOTE = 1024
IMMUTABLE = "field is immutable"
_OTHER = "does not match event.namespace"


def validate_event(event: Object, component: str = "reportingComponent") -> list[FieldError]:
    """Check a core/v1 Event; `component` is the name of the field with the controller. (`legacyValidateEvent`)"""
    namespace = (event.get("metadata") or {}).get("namespace") or ""
    involved = (event.get("involvedObject") or {}).get("namespace") or ""
    path = "involvedObject.namespace"
    if not event.get("eventTime"):
        fits = namespace == involved if involved else namespace in ("", "default")
        return [] if fits else [invalid(path, involved, _OTHER)]
    errors: list[FieldError] = []
    if not involved and namespace not in ("default", "kube-system"):
        errors.append(invalid(path, involved, _OTHER))
    controller = event.get("reportingComponent") or ""
    if not controller:
        errors.append(required(component))
    errors += each(component, controller, is_qualified_name(controller))
    for key in ("reportingInstance", "action", "reason"):
        text = event.get(key) or ""
        if not text:
            errors.append(required(key))
        elif len(text.encode()) > MAX_NAME:
            errors.append(invalid(key, "", f"can have at most {MAX_NAME} characters"))
    if len((event.get("message") or "").encode()) > MAX_NOTE:
        errors.append(invalid("message", "", f"can have at most {MAX_NOTE} characters"))
    return errors


def validate_new_event(event: Object) -> list[FieldError]:
    """Check a new Event of events.k8s.io/v1 in its core/v1 form. (`ValidateEventCreate`)"""
    errors = validate_event(event, "reportingController") + _series(event)
    if not event.get("eventTime"):
        errors.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
    for key in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(key):
            errors.append(invalid(key, "", "needs to be unset"))
    if any((event.get("source") or {}).values()):
        errors.append(invalid("source", "", "needs to be unset"))
    return errors


_FIXED = (
    "involvedObject", "reason", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type",
    "eventTime", "action", "related", "reportingComponent", "reportingInstance",
)  # fmt: skip
_OF_NULL = frozenset({"firstTimestamp", "lastTimestamp", "eventTime", "related"})
"""Shown as null when they are not there."""


def update_event(new: Object, old: Object) -> list[FieldError]:
    """Check a change by events.k8s.io/v1: of its series only. (`ValidateEventUpdate`)"""
    errors = validate_event(new, "reportingController")
    if (new.get("series") or None) != (old.get("series") or None):
        errors += _series(new)
    for key in _FIXED:
        value = new.get(key)
        if (value or None) == (old.get(key) or None):
            continue
        if key in ("involvedObject", "related"):
            value = internal("core.v1.ObjectReference", value or ({} if key == "involvedObject" else None))
        elif key == "source":
            value = internal("core.v1.EventSource", value or {})
        elif value is None and key not in _OF_NULL:
            value = 0 if key == "count" else ""
        errors.append(invalid("reportingController" if key == "reportingComponent" else key, value, IMMUTABLE))
    return errors


def _series(event: Object) -> list[FieldError]:
    """(`validateV1EventSeries`)"""
    series, errors = event.get("series"), list[FieldError]()
    if series is not None:
        if (series.get("count") or 0) < 2:
            errors.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            errors.append(required("series.lastObservedTime"))
    return errors
