"""Giving free memory back: glibc keeps what a process freed in the middle of its heap until it is asked."""

from lastcall.world import memory
from lastcall.world.huge_pages import resident_bytes
from lastcall.world.world import World

LOOK_SECONDS = 10.0
LEAST_BYTES = 8 << 20
"""Free memory that is worth a walk through the heap of a small process; of a large one it is a sixteenth."""


LARGE_BLOCK_BYTES = 128 << 10
"""glibc's own first limit; the 256 KiB that uvloop reserves for each TLS connection are above it."""


async def give_back_free_heap(world: World) -> None:
    """Give large amounts of freed memory back to the kernel, until cancelled; return if libc cannot."""
    memory.keep_large_blocks_apart(LARGE_BLOCK_BYTES)
    rested = 0
    while (free := memory.free_heap_bytes()) is not None:
        resident = resident_bytes()
        rested = min(rested, resident)
        if is_worth_it(free, resident, rested):
            memory.malloc_trim()
            rested = resident_bytes()
        await world.clock.sleep(LOOK_SECONDS)


def is_worth_it(free: int, resident: int, rested: int) -> bool:
    """Return True if `free` bytes of the heap are worth a trim in a process that has grown from `rested` to `resident`.

    malloc counts what went back to the kernel as free, too, and takes other parts of it for the next block. So a
    process can hold all of it again though as much is free at each look: its growth shows that.
    """
    worth = max(LEAST_BYTES, resident // 16)
    return free >= worth and resident - rested >= worth
