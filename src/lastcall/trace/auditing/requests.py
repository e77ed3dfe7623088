"""Audit events of Kubernetes as far as they say who ends Pods: deletions, evictions, writes to owners. Pure.

Source: apiserver pkg/apis/audit/v1/types.go.
"""

# check: pure

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from lastcall.trace.stamps import stamp_ns

if TYPE_CHECKING:
    from lastcall.records.definitions.parts import Audited

OWNERS = frozenset(
    ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs", "replicationcontrollers")
)
_DELETED = frozenset(("pods", "namespaces")) | OWNERS
_ENDED = ("ResponseComplete", "ResponseStarted")


class AuditedWrite(NamedTuple):
    """One request that succeeded. `name` is "" for a collection; times are the API server's, in ns since the epoch.

    `user` is whom the request acted as, `impersonator` who sent it, "" if that is the same.
    """

    audit_id: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    uid: str
    user: str
    impersonator: str
    user_agent: str
    source_ips: tuple[str, ...]
    received_ns: int
    done_ns: int
    label_selector: str = ""

    @property
    def facts(self) -> "Audited":
        """Return what a record says of the request besides user and user agent."""
        facts: Audited = {"auditId": self.audit_id, "sourceIPs": list(self.source_ips)}
        if self.impersonator:
            facts["impersonator"] = self.impersonator
        return facts


def read_event(event: Any) -> AuditedWrite | None:
    """Return what an audit event says, None for one that ends no Pod. Raises ValueError for what is no audit event."""
    if not isinstance(event, Mapping) or event.get("kind") != "Event":
        raise ValueError("it is not an Event")
    if not str(event.get("apiVersion") or "").startswith("audit.k8s.io/"):
        raise ValueError(f"it is an Event of {event.get('apiVersion')}, not of audit.k8s.io/v1")
    ref, status = _map(event, "objectRef"), _map(event, "responseStatus")
    code = status.get("code")
    if event.get("stage") not in _ENDED or not isinstance(code, int) or not 200 <= code < 300:
        return None
    verb, resource, subresource = (_text(event, "verb"), _text(ref, "resource"), _text(ref, "subresource"))
    query = parse_qs(urlsplit(_text(event, "requestURI")).query)
    if not _ends_pods(verb, resource, subresource) or query.get("dryRun"):
        return None
    received, done = stamp_ns(_text(event, "requestReceivedTimestamp")), stamp_ns(_text(event, "stageTimestamp"))
    if received is None or done is None:
        raise ValueError("it has no requestReceivedTimestamp or no stageTimestamp")
    sender, acted = _text(_map(event, "user"), "username"), _text(_map(event, "impersonatedUser"), "username")
    response, request = _map(event, "responseObject"), _map(event, "requestObject")
    uid = (
        _text(ref, "uid")
        or _text(_map(request, "preconditions"), "uid")
        or _text(_map(response, "metadata"), "uid")
        or _text(_map(status, "details"), "uid")
    )
    ips = event.get("sourceIPs")
    return AuditedWrite(
        _text(event, "auditID"),
        verb,
        resource,
        subresource,
        "" if resource == "namespaces" else _text(ref, "namespace"),
        _text(ref, "name"),
        uid if verb != "deletecollection" else "",
        acted or sender,
        sender if acted and acted != sender else "",
        _text(event, "userAgent"),
        tuple(map(str, ips)) if isinstance(ips, list) else (),
        received,
        done,
        ",".join(query.get("labelSelector", ())),
    )


def _ends_pods(verb: str, resource: str, subresource: str) -> bool:
    if (resource, subresource) == ("pods", "eviction"):
        return verb == "create"
    if verb in ("delete", "deletecollection"):
        return resource in _DELETED and not subresource
    return verb in ("update", "patch") and resource in OWNERS and subresource in ("", "scale")


def _map(owner: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = owner.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(owner: Mapping[str, Any], name: str) -> str:
    found = owner.get(name)
    return found if isinstance(found, str) else ""
