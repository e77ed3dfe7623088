"""Puts the walls of a role up: what they catch goes to the role's log, and as records to front, for `status`."""

# check: observes because its walls caught the error

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from lastcall.records import kinds
from lastcall.records.record import Recorder
from lastcall.world import walls

if TYPE_CHECKING:
    from lastcall.records.definitions.every_role import FaultCaught

log = logging.getLogger(__name__)


def put_up_walls(role: str, recorder: Recorder) -> None:
    """From here on; inside the role's event loop, whose callbacks get a wall too."""

    def tell(fault: walls.Fault) -> None:
        facts: FaultCaught = walls.as_facts(fault, role)
        recorder.record(kinds.FAULT_CAUGHT, facts=facts)

    walls.stand(walls.Faults(tell, log.error))
    asyncio.get_running_loop().set_exception_handler(_in_callback)


def _in_callback(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A callback of the event loop, or a task that nobody awaits, has failed: the loop itself goes on."""
    error = context.get("exception")
    if isinstance(error, Exception):
        walls.caught("event loop", str(context.get("message", "")), error)
    else:
        loop.default_exception_handler(context)
