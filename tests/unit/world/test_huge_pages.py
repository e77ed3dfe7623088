"""Which memory of a large process is put into huge pages."""

import asyncio
import ctypes
import mmap
from pathlib import Path

import pytest

from lastcall.world import huge_pages, memory
from lastcall.world.huge_pages import huge_page_bytes, keep_in_huge_pages, private_areas
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

MAPS = """\
00400000-00c00000 r-xp 00000000 fe:00 1 /usr/bin/python3
01100000-01900000 rw-p 00000000 00:00 0                                  [heap]
20000000-20100000 rw-p 00000000 00:00 0
30000000-30400000 rw-p 00000000 00:00 0
40000000-40400000 rw-s 00000000 00:01 7                                  /memfd:ring (deleted)
50000000-50400000 rw-p 00000000 fe:00 2                                  /usr/lib/library.so
60000000-60400000 ---p 00000000 00:00 0
70000000-70800000 rw-p 00000000 00:00 0                                  [stack]
"""


def test_only_whole_huge_pages_of_private_memory_count() -> None:
    assert list(private_areas(MAPS.splitlines(), 2 << 20)) == [(0x1200000, 0x1800000), (0x30000000, 0x30400000)]


@pytest.mark.parametrize(
    ("enabled", "size"), [("always [madvise] never", 2 << 20), ("[always] madvise never", 2 << 20), ("[never]", 0)]
)
def test_the_machine_s_owner_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: str, size: int) -> None:
    (tmp_path / "enabled").write_text(enabled)
    (tmp_path / "hpage_pmd_size").write_text(f"{2 << 20}\n")
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path)
    assert huge_page_bytes() == size
    monkeypatch.setattr(huge_pages, "_SETTINGS", tmp_path / "none")
    assert huge_page_bytes() == 0


@pytest.mark.loopback
async def test_a_large_process_is_moved_and_keeps_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the kernel has huge pages to give is its own affair; it is asked for all of them."""
    huge, size = 2 << 20, 32 << 20
    wanted: set[int] = set()
    all_asked = asyncio.Event()
    advise = memory.madvise_huge_pages

    def note(address: int, length: int) -> None:
        wanted.discard(address)
        if not wanted:
            all_asked.set()
        advise(address, length)

    monkeypatch.setattr(memory, "madvise_huge_pages", note)
    monkeypatch.setattr(huge_pages, "huge_page_bytes", lambda: huge)
    monkeypatch.setattr(huge_pages, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(huge_pages, "FROM_BYTES", 1 << 20)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapped:
        for number in range(0, size, 4096):
            mapped[number] = number // 4096 % 251
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        wanted |= set(range(-(-start // huge) * huge, start + size - huge + 1, huge))
        task = asyncio.ensure_future(keep_in_huge_pages(World()))
        async with asyncio.timeout(60):
            await all_asked.wait()
        task.cancel()
        assert all(mapped[number] == number // 4096 % 251 for number in range(0, size, 4096))


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_the_part_of_a_range_that_is_in_memory_is_known(part: float) -> None:
    size = 2 << 20
    with mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as mapped:
        mapped.madvise(mmap.MADV_NOHUGEPAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        for number in range(0, int(size * part), 4096):
            mapped[number] = 1
        assert memory.resident_part(start, size) == part


@pytest.mark.parametrize(("part", "moved"), [(0.74, False), (0.75, True)])
def test_memory_that_nobody_has_used_stays_out_of_huge_pages(
    monkeypatch: pytest.MonkeyPatch, part: float, moved: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(huge_pages, "huge_page_bytes", lambda: 2 << 20)
    monkeypatch.setattr(huge_pages, "resident_bytes", lambda: 1 << 30)
    monkeypatch.setattr(huge_pages, "own_pages", lambda huge: [0])
    monkeypatch.setattr(memory, "resident_part", lambda page, huge: part)
    monkeypatch.setattr(memory, "madvise_huge_pages", lambda page, huge: asked.append(page))
    monkeypatch.setattr(memory, "madvise_collapse", lambda page, huge: None)

    async def main(world: World) -> None:
        task = asyncio.ensure_future(keep_in_huge_pages(world))
        await world.clock.sleep(huge_pages.LOOK_SECONDS + 1)
        task.cancel()

    run_virtual(main)
    assert bool(asked) is moved
