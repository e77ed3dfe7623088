"""Writes of the API server itself that find no room in the store: the server goes on, and tries them again later."""

import logging
from collections.abc import Awaitable, Callable

from lastcall.kube.api.errors import StatusError, is_insufficient_storage, is_not_found

Write = Callable[[], Awaitable[object]]
"""Does its work anew each time: it may be called again."""

_log = logging.getLogger("lastcall.kube.apiserver")


class Postponed:
    """`attempt` each write, then call `again` from time to time."""

    def __init__(self) -> None:
        self._writes: dict[str, Write] = {}

    async def attempt(self, what: str, write: Write) -> None:
        """Await `write`, or log once that `what` found no room and keep it for `again`. Raises other StatusErrors.

        While something is missing, a 404 is a consequence: a namespace that could not be created has no objects.
        """
        try:
            await write()
        except StatusError as error:
            if not (is_insufficient_storage(error) or (self._writes and is_not_found(error))):
                raise
            if what not in self._writes:
                _log.warning("%s is not written now, but when the store has room: %s", what, error)
            self._writes[what] = write
        else:
            if self._writes.pop(what, None) is not None:
                _log.warning("%s is written now", what)

    async def again(self) -> None:
        """Try once more what found no room. What the server refuses for another reason is given up."""
        for what, write in list(self._writes.items()):
            try:
                await self.attempt(what, write)
            except StatusError as error:
                _log.warning("%s is not written: %s", what, error)
                if error.code < 500:
                    self._writes.pop(what, None)
