"""Status errors: what an API server answers when it refuses, and what a client raises.

Source: apimachinery pkg/api/errors/errors.go. The constructors for each reason live here too, so that message texts
stand in one place.
"""

from typing import Any, cast

from lastcall.api.meta import Object


class StatusError(Exception):
    """A request was refused. `status` is the `Status` object as it goes over the wire."""

    def __init__(self, status: Object, headers: dict[str, str] | None = None) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers or {}

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return cast(int, self.status.get("code", 500))

    @property
    def reason(self) -> str:
        """`NotFound`, `Conflict`, …; "" when the server gave none."""
        return cast(str, self.status.get("reason", ""))

    @property
    def message(self) -> str:
        return cast(str, self.status.get("message", ""))


def status_failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> StatusError:
    """A StatusError with status `Failure`; an empty `reason` or None `details` is left out, as Kubernetes does."""
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
