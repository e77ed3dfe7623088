"""Every failure that lastcall reports to its callers. Texts are for people: what happened, what is known, and the fix.

The command line ends with an exit status for each (`cli/exit_status.py:of_error`).
"""

# check: allow dataclasses.dataclass because lastcall.world is above it

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal


class LastcallError(Exception):
    """Any failure that is reported: of a command, or of the Python API."""


class UserError(LastcallError):
    """The user's: a manifest or an option. The text names file, field, value and the fix, one problem a line."""


class InvalidManifest(UserError):
    """A manifest that cannot be read, or that the API server refuses; the text names file, line and field."""


class NotFound(LastcallError):
    """An object that was named does not exist."""


class NoRequests(UserError):
    """Asked for lost requests where none were sent."""


@dataclass(frozen=True, slots=True)
class UnreadyCause:
    """One cause of a Pod (`namespace/name`), or of an owner of Pods, that did not become Ready.

    `id` is one of the catalogue. `advice` is "" without any. `change` is the advice as data where it is definite:
    `{"patch": …}`, a strategic merge patch of the Pod's spec, or `{"program": …}`, what only a person can correct.
    """

    pod: str
    id: str
    severity: Literal["info", "warning", "problem"]
    container: str
    text: str
    advice: str
    change: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class HeldObject:
    """What is still there after its DELETE (`Worker shop/one`). `advice` is "" where time alone ends it."""

    object: str
    finalizers: tuple[str, ...]
    text: str
    advice: str = ""


class WorldError(LastcallError):
    """The world's: the kernel, the network, the runtime, a Pod that does not do what it should."""


class _Unready(WorldError):
    def __init__(self, message: str = "", causes: Iterable[UnreadyCause] = ()) -> None:
        super().__init__(message)
        self.causes = tuple(causes)
        """Why Pods did not become Ready, as far as it is known; the text says the same."""


def causes_of(error: BaseException | None) -> tuple[UnreadyCause, ...]:
    """Return why Pods did not become Ready; () for an error that is about something else."""
    return error.causes if isinstance(error, _Unready) else ()


class ClusterError(WorldError):
    """The cluster cannot start, has ended, or does not answer."""


class NotReady(_Unready):
    """What was waited for did not become Ready; the text reports its Pods, their Events and what they printed."""


class StillThere(WorldError):
    """Raised when what was deleted is not gone in time; the text says what holds it."""

    def __init__(self, message: str = "", causes: Iterable[HeldObject] = ()) -> None:
        super().__init__(message)
        self.causes = tuple(causes)
        """What is still there, as far as it is known."""


class Crashed(_Unready):
    """A container of the manifests crashed before anything was done to it."""


class Interrupted(LastcallError):
    """A signal asked for the end."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.number = number


class ReaderGone(LastcallError):
    """Nobody reads what is printed any more."""
