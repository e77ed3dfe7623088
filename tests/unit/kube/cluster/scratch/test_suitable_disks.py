"""Which file systems can hold what containers write."""

from dataclasses import replace

import pytest

from lastcall.kube.cluster.scratch.suitable import DISKS, LEAST_BYTES, Disk, why_not

GOOD = Disk(0xEF53, 100 << 30, 1_000_000)
SIZE = 8 << 30


@pytest.mark.parametrize("kind", DISKS)
def test_disks_can(kind: int) -> None:
    assert why_not(replace(GOOD, kind=kind), SIZE) == ""


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        (replace(GOOD, kind=0x01021994), "its file system is a tmpfs, which is memory"),
        (replace(GOOD, kind=0x794C7630), "its file system is an overlay: this program runs in a container"),
        (replace(GOOD, kind=0x6969), "its file system is NFS"),
        (replace(GOOD, kind=0x1234), "its file system is of a type that is not known to work (0x1234)"),
        (replace(GOOD, executable=False), "its file system is mounted noexec"),
        (replace(GOOD, free=LEAST_BYTES - 1), "its file system has 2047 MiB left, fewer than 2048"),
    ],
)
def test_others_cannot_and_the_reason_is_named(disk: Disk, why: str) -> None:
    assert why_not(disk, SIZE) == why


def test_a_small_cluster_needs_little_room() -> None:
    assert why_not(replace(GOOD, free=32 << 20), 32 << 20) == ""
    assert "31 MiB left, fewer than 32" in why_not(replace(GOOD, free=31 << 20), 32 << 20)
