"""Errors of the world: the tree could not be made."""

from lastcall.world.needs import Need


class ClusterStartError(Exception):
    """The process tree could not be started. `need` is the machine's missing need, when one explains it."""

    def __init__(self, message: str, need: Need | None = None) -> None:
        super().__init__(message)
        self.need = need
