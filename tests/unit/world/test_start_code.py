"""What a process gives back after its start."""

import ssl
import sys

import pytest

from lastcall.world.start_code import clean_mappings, give_back_start_code

SMAPS = """\
55d0-65d0 r--p 00000000 fe:00 1 /usr/bin/python3
Rss:                 200 kB
Anonymous:             0 kB
7000-8000 r-xp 00001000 fe:00 2 /usr/lib/a library (deleted).so
Rss:                 128 kB
Anonymous:             0 kB
8000-9000 r--p 00001000 fe:00 2 /usr/lib/relocated-and-protected.so
Rss:                 500 kB
Anonymous:             4 kB
9000-a000 rw-p 00001000 fe:00 2 /usr/lib/data.so
Rss:                 500 kB
Anonymous:             0 kB
a000-b000 r-xp 00001000 fe:00 2 /usr/lib/small.so
Rss:                 124 kB
Anonymous:             0 kB
b000-c000 r--s 00001000 fe:00 2 /memfd:shared
Rss:                 500 kB
Anonymous:             0 kB
c000-d000 r-xp 00000000 00:00 0 [vdso]
Rss:                 500 kB
Anonymous:             0 kB
d000-e000 r--p 00000000 00:00 0
Rss:                 500 kB
Anonymous:             0 kB
"""


def test_only_clean_mappings_of_files_that_nobody_may_write_are_given_back() -> None:
    assert list(clean_mappings(SMAPS.splitlines(keepends=True))) == [(0x55D0, 0x65D0), (0x7000, 0x8000)]


def test_where_the_kernel_does_not_tell_what_is_clean_nothing_is() -> None:
    assert list(clean_mappings(line for line in SMAPS.splitlines() if not line.startswith("Anonymous"))) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_goes_on_after_it() -> None:
    for _ in range(3):
        give_back_start_code()
        assert ssl.create_default_context().cert_store_stats()["crl"] == 0
        assert sum(int(digit) for digit in str(3**2000)) > 0
