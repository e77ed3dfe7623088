"""What can go wrong with a cluster as a whole. Every text says what, where, and the fix."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.world.need import Need


class ClusterStartError(Exception):
    """The process tree could not be started. `need` is the machine's missing need, when one explains it."""

    def __init__(self, message: str, need: "Need | None" = None) -> None:
        super().__init__(message)
        self.need = need


class ClusterDied(Exception):
    """A running cluster ended without being asked to."""


class ClusterUsageError(Exception):
    """What the user asked for cannot be: a name, a directory or a version that does not fit."""


class NotRunning(Exception):
    """No cluster of that name runs."""


class AlreadyRunning(ClusterUsageError):
    """A cluster of that name runs, starts or ends."""


class NewerVersion(ClusterUsageError):
    """Written, or spoken, by a newer lastcall than this one."""


class PortTaken(Exception):
    """A port that was to be published cannot be listened on."""


class DirectoryError(Exception):
    """The place for a cluster's files cannot be used."""


class ControlError(Exception):
    """Front does not answer as it should."""
