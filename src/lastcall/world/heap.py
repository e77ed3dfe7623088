"""Giving free memory back: glibc keeps what a process freed in the middle of its heap until it is asked."""

from lastcall.world import linux
from lastcall.world.world import World

LOOK_SECONDS = 10.0
WORTH_BYTES = 16 << 20
"""Free memory that is worth a walk through the heap."""


LARGE_BLOCK_BYTES = 128 << 10
"""glibc's own first limit; the 256 KiB that uvloop reserves for each TLS connection are above it."""


async def give_back_free_heap(world: World) -> None:
    """Give large amounts of freed memory back to the kernel, until cancelled; return if libc cannot."""
    linux.keep_large_blocks_apart(LARGE_BLOCK_BYTES)
    kept = 0
    while (free := linux.free_heap_bytes()) is not None:
        kept = min(kept, free)
        if is_worth_it(free, kept):
            linux.malloc_trim()
            kept = linux.free_heap_bytes() or 0
        await world.clock.sleep(LOOK_SECONDS)


def is_worth_it(free: int, kept: int) -> bool:
    """Return True if `free` bytes of the heap are worth a trim, when `kept` of them were given back before.

    What was given back still counts as free for malloc.
    """
    return free - kept >= WORTH_BYTES
