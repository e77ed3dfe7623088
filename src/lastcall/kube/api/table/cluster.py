"""Rows of storage drivers, devices, Service addresses, flow control and certificates.

Source: pkg/printers/internalversion/printers.go.
"""

from datetime import datetime, timedelta
from typing import Any

from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.table.text import NONE, UNSET, age, created, human_duration
from lastcall.kube.api.text.go_selectors import selector_text


def _spec(obj: Object) -> Object:
    found: Object = obj.get("spec") or {}
    return found


def _status(obj: Object) -> Object:
    found: Object = obj.get("status") or {}
    return found


def certificate_signing_request(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    seconds = spec.get("expirationSeconds")
    duration = NONE if seconds is None else human_duration(timedelta(seconds=seconds))
    return [
        name_of(obj),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        duration,
        _certificate_state(_status(obj)),
    ]


def _certificate_state(status: Object) -> str:
    """(`extractCSRStatus`)"""
    types = {condition.get("type") for condition in status.get("conditions") or ()}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    if "Failed" in types:
        state += ",Failed"
    if status.get("certificate"):
        state += ",Issued"
    return state


def flow_schema(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    dangling = [each.get("status") for each in _status(obj).get("conditions") or () if each.get("type") == "Dangling"]
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        age(obj, now),
        dangling[-1] if dangling else "?",
    ]


def priority_level(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing") or {}
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares", 0)
    queues = [queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(obj), spec.get("type", ""), shares, *queues, age(obj, now)]


def csi_driver(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    audiences = [each.get("audience", "") for each in spec.get("tokenRequests") or ()]
    return [
        name_of(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) if audiences else UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def csi_node(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(_spec(obj).get("drivers") or ()), age(obj, now)]


def volume_attachment(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    attached = _status(obj).get("attached", False)
    return [name_of(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, age(obj, now)]


def volume_attributes_class(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("driverName", ""), age(obj, now)]


def created_at(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), created(obj)]


def resource_claim(obj: Object, now: datetime) -> list[Any]:
    """Return the row of a ResourceClaim. (`resourceClaimState`)"""
    status = _status(obj)
    states = ["deleted"] if obj["metadata"].get("deletionTimestamp") else []
    if status.get("allocation") is None:
        states += [] if states else ["pending"]
    else:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    return [name_of(obj), ",".join(states), age(obj, now)]


def resource_slice(obj: Object, now: datetime) -> list[Any]:
    spec = _spec(obj)
    pool = (spec.get("pool") or {}).get("name", "")
    return [name_of(obj), spec.get("nodeName", UNSET), spec.get("driver", ""), pool, age(obj, now)]


def component_status(obj: Object, now: datetime) -> list[Any]:
    for each in obj.get("conditions") or ():
        if each.get("type") == "Healthy":
            shown = "Healthy" if each.get("status") == "True" else "Unhealthy"
            return [name_of(obj), shown, each.get("message", ""), each.get("error", "")]
    return [name_of(obj), "Unknown", "", ""]


def ip_address(obj: Object, now: datetime) -> list[Any]:
    """Return the row, with an age that no column names, as in Kubernetes."""
    parent = _spec(obj).get("parentRef")
    if parent is None:
        return [name_of(obj), NONE, age(obj, now)]
    place = [parent.get("resource", "")]
    if parent.get("group"):
        place[0] += f".{parent['group']}"
    place += [parent["namespace"]] if parent.get("namespace") else []
    return [name_of(obj), "/".join([*place, parent.get("name", "")]), age(obj, now)]


def service_cidr(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), ",".join(_spec(obj).get("cidrs") or ()), age(obj, now)]


def webhook_configuration(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def mutating_policy(obj: Object, now: datetime) -> list[Any]:
    return _policy(obj, "mutations", now)


def validating_policy(obj: Object, now: datetime) -> list[Any]:
    return _policy(obj, "validations", now)


def _policy(obj: Object, key: str, now: datetime) -> list[Any]:
    kind = _spec(obj).get("paramKind")
    shown = UNSET if kind is None else f"{kind.get('apiVersion')}/{kind.get('kind')}"
    return [name_of(obj), len(_spec(obj).get(key) or ()), shown, age(obj, now)]


def admission_policy_binding(obj: Object, now: datetime) -> list[Any]:
    ref = _spec(obj).get("paramRef")
    shown = UNSET
    if ref is not None and ref.get("name"):
        shown = f"{ref.get('namespace') or '*'}/{ref['name']}"
    elif ref is not None:
        selector: Any = ref.get("selector") or {}
        shown = selector_text(selector)
    return [name_of(obj), _spec(obj).get("policyName", ""), shown, age(obj, now)]


ROWS = {
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): (
        ("Name", "Mutations", "ParamKind", "Age"),
        mutating_policy,
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): (
        ("Name", "PolicyName", "ParamRef", "Age"),
        admission_policy_binding,
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): (
        ("Name", "Validations", "ParamKind", "Age"),
        validating_policy,
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): (
        ("Name", "PolicyName", "ParamRef", "Age"),
        admission_policy_binding,
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): (
        ("Name", "Webhooks", "Age"),
        webhook_configuration,
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): (
        ("Name", "Webhooks", "Age"),
        webhook_configuration,
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): (
        ("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"),
        certificate_signing_request,
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): (
        ("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"),
        flow_schema,
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): (
        ("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        priority_level,
    ),
    ("storage.k8s.io", "csidrivers"): (
        ("Name", "AttachRequired", "PodInfoOnMount", "StorageCapacity", "TokenRequests", "RequiresRepublish", "Modes",
         "Age"),
        csi_driver,
    ),
    ("storage.k8s.io", "csinodes"): (("Name", "Drivers", "Age"), csi_node),
    ("storage.k8s.io", "volumeattachments"): (
        ("Name", "Attacher", "PV", "Node", "Attached", "Age"), volume_attachment
    ),
    ("storage.k8s.io", "volumeattributesclasses"): (("Name", "DriverName", "Age"), volume_attributes_class),
    ("storage.k8s.io", "csistoragecapacities"): (("Name", "Created At"), created_at),
    ("resource.k8s.io", "resourceclaims"): (("Name", "State", "Age"), resource_claim),
    ("resource.k8s.io", "resourceslices"): (("Name", "Node", "Driver", "Pool", "Age"), resource_slice),
    ("", "componentstatuses"): (("Name", "Status", "Message", "Error"), component_status),
    ("networking.k8s.io", "ipaddresses"): (("Name", "ParentRef"), ip_address),
    ("networking.k8s.io", "servicecidrs"): (("Name", "CIDRs", "Age"), service_cidr),
}  # fmt: skip
"""(columns, row) by group and plural."""
