"""Status errors: what an API server answers when it refuses, and what a client raises.

Source: apimachinery pkg/api/errors/errors.go. The constructors for each reason live here too, so that message texts
stand in one place.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from lastcall.kube.api.field import FieldError, causes_of, go_quote, message_of
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource


class StatusError(Exception):
    """A request was refused. `status` is the `Status` object as it goes over the wire."""

    def __init__(self, status: Object, headers: dict[str, str] | None = None) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers or {}

    @property
    def code(self) -> int:
        """Return the HTTP status code."""
        return cast(int, self.status.get("code", 500))

    @property
    def reason(self) -> str:
        """Return `NotFound`, `Conflict`, …; "" when the server gave none."""
        return cast(str, self.status.get("reason", ""))

    @property
    def message(self) -> str:
        return cast(str, self.status.get("message", ""))


def status_failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> StatusError:
    """Make a StatusError with status `Failure`; an empty `reason` or None `details` is left out, as Kubernetes does."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return StatusError(status)


def is_not_found(error: StatusError) -> bool:
    return error.reason == "NotFound"


def is_conflict(error: StatusError) -> bool:
    return error.reason == "Conflict"


def is_already_exists(error: StatusError) -> bool:
    return error.reason == "AlreadyExists"


def is_insufficient_storage(error: StatusError) -> bool:
    """Return True for `insufficient_storage`: the store has no room for the write."""
    return error.reason == "InsufficientStorage"


Target = Resource | str
"""What a message names: a resource, or its name as text (`pods/binding`, `Pod`)."""


def _details(target: Target, name: str = "", **more: Any) -> dict[str, Any]:
    """`details` in the field order of Kubernetes; `kind` is the plural resource, empty fields are left out."""
    group, kind = (target.group, target.plural) if isinstance(target, Resource) else ("", target)
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value not in ("", None)}


def _shown(target: Target, name: str) -> str:
    text = target.group_resource if isinstance(target, Resource) else target
    return f"{text} {go_quote(name)}" if name else text


def not_found(target: Target, name: str) -> StatusError:
    return status_failure(404, "NotFound", f"{_shown(target, '')} {go_quote(name)} not found", _details(target, name))


def resource_not_found() -> StatusError:
    """Make the error for a URL that names no resource that is served."""
    return status_failure(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(target: Target, name: str, *, being_deleted: bool = False) -> StatusError:
    """Make the error for a name in use. `being_deleted`: the existing object is terminating (`store.go:Create`)."""
    prefix = "object is being deleted: " if being_deleted else ""
    message = f"{prefix}{_shown(target, '')} {go_quote(name)} already exists"
    return status_failure(409, "AlreadyExists", message, _details(target, name))


def generate_name_conflict(target: Target, name: str) -> StatusError:
    """Make the error for when every generated name was in use (`NewGenerateNameConflict`)."""
    message = (
        f"{_shown(target, '')} {go_quote(name)} already exists, the server was not able to generate a unique name "
        "for the object"
    )
    details = _details(target, name, retryAfterSeconds=1)
    return _with_retry_after(status_failure(409, "AlreadyExists", message, details), 1)


def conflict(target: Target, name: str, why: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {_shown(target, '')} {go_quote(name)}: {why}"
    return status_failure(409, "Conflict", message, _details(target, name))


OPTIMISTIC_LOCK = "the object has been modified; please apply your changes to the latest version and try again"
"""Why a write with a stale resourceVersion is refused."""


MAX_ERRORS = 1000
"""Most errors of one object in an answer: an answer with a hundred thousand of them takes a minute to make."""


def invalid(target: Target, name: str, errors: Sequence[FieldError], *, group: str = "") -> StatusError:
    """Make the error for an invalid object. Every error is a cause, the message shows equal ones once. (`NewInvalid`)

    `target` is a Resource (shown as `Kind.group`) or a kind in `group`, e.g. `ListOptions` in `meta.k8s.io`.
    """
    kind, group = (target.kind, target.group) if isinstance(target, Resource) else (target, group)
    shown = f"{kind}.{group}" if group else kind
    message = f"{shown} {go_quote(name)} is invalid"
    errors = errors[:MAX_ERRORS]
    if errors:
        message += ": " + message_of(errors)
    details = {"name": name, "group": group, "kind": kind, "causes": causes_of(errors)}
    return status_failure(422, "Invalid", message, {key: value for key, value in details.items() if value})


def bad_request(message: str) -> StatusError:
    return status_failure(400, "BadRequest", message)


def cannot_be_handled(kind: str, version: str, expected_kind: str, why: str) -> StatusError:
    """Make the error for a body that cannot be decoded. It says that it is a `kind` in `version` (without group)."""
    return bad_request(f"{kind} in version {go_quote(version)} cannot be handled as a {expected_kind}: {why}")


def forbidden(target: Target, name: str, why: str, causes: Sequence[Mapping[str, str]] = ()) -> StatusError:
    """Make the error for a forbidden request; `target` "" is a path that is not a resource. (`NewForbidden`)"""
    shown = _shown(target, name)
    message = f"{shown} is forbidden: {why}" if shown else f"forbidden: {why}"
    return status_failure(403, "Forbidden", message, _details(target, name, causes=list(causes) or None))


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return status_failure(405, "MethodNotAllowed", message, {})


def not_watched(resource: Resource) -> StatusError:
    """Make the error for a registry without a watch. (NewMethodNotSupported)"""
    message = f"watch is not supported on resources of kind {go_quote(resource.group_resource)}"
    details = {"kind": resource.plural}
    return status_failure(
        405, "MethodNotAllowed", message, {"group": resource.group, **details} if resource.group else details
    )


def unsupported_media_type(message: str = "415: Unsupported Media Type") -> StatusError:
    """Make the error for a media type; the default text is for a PATCH whose content type is not a patch type."""
    return status_failure(415, "UnsupportedMediaType", message, {})


def too_large(message: str) -> StatusError:
    return status_failure(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def expired(message: str, continue_token: str = "") -> StatusError:
    """Make the error for what is compacted. With `continue_token` the client may continue its list, inconsistently."""
    error = status_failure(410, "Expired", message)
    if continue_token:
        error.status["metadata"] = {"continue": continue_token}
    return error


def too_old_resource_version(asked: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {asked} ({oldest})")


def list_too_old() -> StatusError:
    return expired("The resourceVersion for the provided list is too old.")


def timeout(message: str, retry_after_seconds: int = 0) -> StatusError:
    details = {"retryAfterSeconds": retry_after_seconds} if retry_after_seconds else {}
    return _with_retry_after(status_failure(504, "Timeout", f"Timeout: {message}", details), retry_after_seconds)


def too_large_resource_version(asked: int, current: int) -> StatusError:
    """Return the error for a resourceVersion that is not there yet. (`storage.NewTooLargeResourceVersionError`)"""
    error = timeout(f"Too large resource version: {asked}, current: {current}", 1)
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error.status["details"] = {"causes": causes, "retryAfterSeconds": 1}
    return error


def too_many_requests(
    message: str, retry_after_seconds: int = 0, causes: Sequence[Mapping[str, str]] = ()
) -> StatusError:
    details: dict[str, Any] = {"causes": list(causes)} if causes else {}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    error = status_failure(429, "TooManyRequests", message, details)
    return _with_retry_after(error, retry_after_seconds)


def service_unavailable(message: str) -> StatusError:
    return status_failure(503, "ServiceUnavailable", message)


def internal(why: str) -> StatusError:
    message = f"Internal error occurred: {why}"
    return status_failure(500, "InternalError", message, {"causes": [{"message": why}]})


def insufficient_storage(why: str) -> StatusError:
    """Make the error that etcd's NOSPACE alarm is to kube-apiserver, with its words: there a 500 that has no reason.

    Without Retry-After: clients that obey it would ask ten times more before they say what is wrong.
    """
    message = f"mvcc: database space exceeded: {why}"
    return status_failure(507, "InsufficientStorage", message, {"causes": [{"message": why}]})


def plain_failure(message: str) -> StatusError:
    """Make a Go error that is not an API status: code 500, no reason (`responsewriters.ErrorToAPIStatus`)."""
    return status_failure(500, "", message)


def status_success(details: dict[str, Any] | None = None, code: int = 0) -> Object:
    """Return a Status `Success`, without `code` if it is 0, and without `details` if there are none."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code:
        status["code"] = code
    return status


def _with_retry_after(error: StatusError, seconds: int) -> StatusError:
    if seconds:
        error.headers["Retry-After"] = str(seconds)
    return error
