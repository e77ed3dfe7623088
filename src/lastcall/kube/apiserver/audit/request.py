"""One audited request: its event as it grows, on the context of the task that answers the request.

Source: apiserver pkg/audit/{context,request}.go, pkg/endpoints/filters/audit.go.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.audit.policy import API_VERSION, LEVELS, REQUEST, REQUEST_RESPONSE, Decision
from lastcall.kube.apiserver.requestinfo import RequestInfo

if TYPE_CHECKING:
    from lastcall.kube.apiserver.auth.authentication import UserInfo
    from lastcall.records.definitions.parts import Audited

MOST_EVENT_BYTES = 1 << 20
"""An event above that loses its objects. (`--audit-log-truncate-enabled`, which has 100 KiB)"""
TRUNCATED = "audit.k8s.io/truncated"
LONGEST_AGENT = 1024
_STATUS_FIELDS = ("status", "message", "reason", "details", "code")
DELETE_OPTIONS_TYPE = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"}
"""The type of the options of a DELETE as kube-apiserver writes it down."""
Emit = Callable[["AuditedRequest", str], None]
"""Writes the event of a stage."""


class AuditedRequest:
    """A request that its policy writes down. `emit` writes the event as it is at a stage that is not left out."""

    __slots__ = ("_emit", "annotations", "decision", "fields", "info", "is_started", "long_running")

    def __init__(
        self,
        decision: Decision,
        emit: Emit,
        info: RequestInfo,
        *,
        audit_id: str,
        uri: str,
        user: "UserInfo | None",
        sources: Sequence[str],
        user_agent: str,
        received: str,
        long_running: bool = False,
    ) -> None:
        self.decision, self._emit, self.info = decision, emit, info
        self.long_running, self.is_started = long_running, False
        self.annotations: dict[str, str] = {}
        agent = user_agent if len(user_agent) <= LONGEST_AGENT else f"{user_agent[:LONGEST_AGENT]}...TRUNCATED"
        self.fields: dict[str, Any] = {
            "level": LEVELS[decision.level],
            "auditID": audit_id,
            "requestURI": uri,
            "verb": info.verb,
            "user": {} if user is None else user_fields(user),
            "sourceIPs": list(sources),
            "userAgent": agent,
            "requestReceivedTimestamp": received,
        }
        if info.is_resource_request:
            self.fields["objectRef"] = _reference(info)

    @property
    def audit_id(self) -> str:
        return str(self.fields["auditID"])

    @property
    def wants_response(self) -> bool:
        """Return whether the object of the answer is logged, too."""
        return self.decision.level >= REQUEST_RESPONSE and self.info.is_resource_request

    @property
    def facts(self) -> "Audited":
        """Return what records say of the request."""
        return {"auditId": self.audit_id, "sourceIPs": self.fields["sourceIPs"]}

    def impersonated(self, user: "UserInfo", mode: str) -> None:
        """Note as whom the request goes on; `mode` is "" for the legacy one."""
        self.fields["impersonatedUser"] = user_fields(user)
        if mode:
            self.fields["authenticationMetadata"] = {"impersonationConstraint": f"impersonate:{mode}"}

    def authorized(self, allowed: bool, reason: str) -> None:
        self.annotations["authorization.k8s.io/decision"] = "allow" if allowed else "forbid"
        self.annotations["authorization.k8s.io/reason"] = reason

    def request_object(self, obj: Any, complete: Callable[[], Object] | None = None) -> None:
        """Note the body. `complete` makes the object with its defaults of it, which is what is written down."""
        meta = obj.get("metadata") if isinstance(obj, Mapping) else None
        if isinstance(meta, Mapping) and (ref := self.fields.get("objectRef")) is not None:
            for key, name in (("namespace", "namespace"), ("name", "name"), ("uid", "uid")):
                if not ref.get(key) and isinstance(meta.get(name), str) and meta[name]:
                    ref[key] = meta[name]
            if isinstance(version := meta.get("resourceVersion"), str) and version:
                ref.setdefault("resourceVersion", version)
        if self.decision.level >= REQUEST:
            self.fields["requestObject"] = self._shown(obj if complete is None else complete())

    def request_patch(self, patch: Any) -> None:
        if self.decision.level >= REQUEST:
            self.fields["requestObject"] = patch

    def response_object(self, obj: Object) -> None:
        """Note what is answered: of a Status its main fields at every level."""
        if obj.get("kind") == "Status" and obj.get("apiVersion") == "v1":
            self.fields["responseStatus"] = {"metadata": {}, **{k: obj[k] for k in _STATUS_FIELDS if k in obj}}
        if self.wants_response:
            self.fields["responseObject"] = self._shown(obj)

    def response_body(self, body: bytes) -> None:
        """Note what is answered as `response_object` does, from its JSON."""
        if self.wants_response or body.startswith((b'{"kind":"Status"', b'{"apiVersion":"v1","kind":"Status"')):
            decoded = orjson.loads(body)
            if isinstance(decoded, dict):
                self.response_object(decoded)

    def started(self, code: int) -> None:
        """Emit that a long answer has begun."""
        if not self.is_started:
            self.is_started = True
            self._coded(code)
            self._emit(self, "ResponseStarted")

    def completed(self, code: int | None) -> None:
        """Emit the end of the answer; None: no answer was begun.

        Of a request whose sender is not known there is one event, of the stage ResponseStarted.
        """
        if not self.fields["user"]:
            self.started(401 if code is None else code)
            return
        if code is None and "responseStatus" not in self.fields:
            early = {"metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200}
            self.fields["responseStatus"] = early
            code = 200
        if code is not None and self.long_running:
            self.started(code)
        elif code is not None:
            self._coded(code)
        self._emit(self, "ResponseComplete")

    def _coded(self, code: int) -> None:
        self.fields.setdefault("responseStatus", {"metadata": {}})["code"] = code

    def _shown(self, obj: Any) -> Any:
        return without_managed_fields(obj) if self.decision.omit_managed_fields else obj

    def line(self, stage: str, stamp: str) -> bytes:
        """Return the event as one line of JSON, without its objects where they make it too long."""
        annotations = self.annotations
        line = _dumped(self._event(stage, stamp, annotations))
        if len(line) <= MOST_EVENT_BYTES:
            return line
        event = self._event(stage, stamp, {**annotations, TRUNCATED: "true"})
        event.pop("requestObject", None)
        event.pop("responseObject", None)
        return _dumped(event)

    def _event(self, stage: str, stamp: str, annotations: Mapping[str, str]) -> dict[str, Any]:
        fields = {**self.fields, "stage": stage, "stageTimestamp": stamp}
        event: dict[str, Any] = {"kind": "Event", "apiVersion": API_VERSION}
        event |= {name: fields[name] for name in _ORDER if name in fields}
        if annotations:
            event["annotations"] = dict(annotations)
        return event


_ORDER = (
    "level", "auditID", "stage", "requestURI", "verb", "user", "impersonatedUser", "authenticationMetadata",
    "sourceIPs", "userAgent", "objectRef", "responseStatus", "requestObject", "responseObject",
    "requestReceivedTimestamp", "stageTimestamp",
)  # fmt: skip


def _dumped(event: dict[str, Any]) -> bytes:
    """Return a line of JSON, also of numbers that are too long for orjson, and of headers that are not UTF-8."""
    try:
        return orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


def user_fields(user: "UserInfo") -> dict[str, Any]:
    """Return a user as authentication.k8s.io/v1 shows one."""
    shown = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in shown.items() if value}


def _reference(info: RequestInfo) -> dict[str, str]:
    reference = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in reference.items() if value}


def without_managed_fields(obj: Any) -> Any:
    """Return a copy of an object, a list or a Table whose objects have no managedFields."""
    if not isinstance(obj, Mapping):
        return obj
    shown = dict(obj)
    if isinstance(meta := shown.get("metadata"), Mapping) and "managedFields" in meta:
        shown["metadata"] = {key: value for key, value in meta.items() if key != "managedFields"}
    if isinstance(items := shown.get("items"), list):
        shown["items"] = [without_managed_fields(each) for each in items]
    if isinstance(rows := shown.get("rows"), list):
        shown["rows"] = [{**row, "object": without_managed_fields(row.get("object"))} for row in rows]
    return shown


_CURRENT: ContextVar[AuditedRequest | None] = ContextVar("audited request", default=None)


def current() -> AuditedRequest | None:
    """Return the request that this task answers, if it is audited."""
    return _CURRENT.get()


def current_facts() -> "Audited":
    """Return what records say of the request that this task answers."""
    audited = _CURRENT.get()
    return {} if audited is None else audited.facts


def begin_answer(audited: AuditedRequest | None) -> None:
    """Make `audited` the current one until the block of `answering` around this ends."""
    _CURRENT.set(audited)


@contextmanager
def answering(audited: AuditedRequest | None) -> Iterator[None]:
    """Make `audited` the current one as long as the block runs."""
    token = _CURRENT.set(audited)
    try:
        yield
    finally:
        _CURRENT.reset(token)
