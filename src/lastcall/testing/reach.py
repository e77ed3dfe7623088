"""Whether a published port leads anywhere yet."""

import asyncio
from contextlib import suppress

from lastcall.errors import NotReady
from lastcall.world.clock import Clock, monotonic

HELD_SECONDS = 0.05
"""A connection that leads nowhere is reset by then: the node dials within a millisecond."""
_AGAIN_SECONDS = 0.05


async def until_reachable(address: tuple[str, int], target: str, clock: Clock, timeout: float) -> None:
    """Return when a connection to the port is neither refused nor reset. Raises NotReady after `timeout` seconds."""
    until = monotonic(clock) + timeout
    while not await _leads_somewhere(address):
        if monotonic(clock) > until:
            raise NotReady(
                f"{target} accepts no connection after {timeout:g} s: check that a Pod behind it is Ready and listens "
                "on the target port"
            )
        await clock.sleep(_AGAIN_SECONDS)


async def _leads_somewhere(address: tuple[str, int]) -> bool:
    try:
        reader, writer = await asyncio.open_connection(*address)
    except OSError:
        return False
    try:
        async with asyncio.timeout(HELD_SECONDS):
            return bool(await reader.read(1))  # some servers speak first
    except TimeoutError:
        return True
    except OSError:
        return False
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
