"""Install the crash guards of a role: what they catch goes to the role's log, and as records to front, for `status`."""

# check: observes because its guards caught the error

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from lastcall.records import kinds
from lastcall.records.record import Recorder
from lastcall.world import crash_guard

if TYPE_CHECKING:
    from lastcall.records.definitions.every_role import FaultCaught

log = logging.getLogger(__name__)


def install_guards(role: str, recorder: Recorder) -> None:
    """Install the guards from here on, inside the role's event loop, whose callbacks are guarded, too."""

    def tell(fault: crash_guard.Fault) -> None:
        facts: FaultCaught = crash_guard.as_facts(fault, role)
        recorder.record(kinds.FAULT_CAUGHT, facts=facts)

    crash_guard.install(crash_guard.Faults(tell, log.error))
    asyncio.get_running_loop().set_exception_handler(_in_callback)


def _in_callback(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A callback of the event loop, or a task that nobody awaits, has failed: the loop itself goes on."""
    error = context.get("exception")
    if isinstance(error, Exception):
        crash_guard.caught("event loop", str(context.get("message", "")), error)
    else:
        loop.default_exception_handler(context)
