"""Return `process_*`: what this process uses, read from /proc at each scrape.

Source: prometheus/client_golang prometheus/process_collector_procfsenabled.go.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lastcall.world.clock import Clock
from lastcall.world.counting import Family

_AFTER_NAME = 2
"""Columns of /proc/self/stat before those counted here: the pid and the name, which may hold blanks."""


def _stat() -> list[str]:
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()


def start_time(clock: Clock) -> float:
    """Return when this process started, in seconds since the Unix epoch."""
    with suppress(OSError, ValueError, IndexError):
        ticks = int(_stat()[21 - _AFTER_NAME]) / os.sysconf("SC_CLK_TCK")
        return clock.wall_ns() / 1e9 - float(Path("/proc/uptime").read_text().split()[0]) + ticks
    return 0.0


def process_families(clock: Clock) -> Iterator[Family]:
    """Yield the metrics of this process; none if /proc cannot be read."""
    with suppress(OSError, ValueError, IndexError):
        fields = _stat()
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        found: dict[str, float] = {
            "process_cpu_seconds_total": used.ru_utime + used.ru_stime,
            "process_max_fds": most_files,
            "process_open_fds": len(os.listdir("/proc/self/fd")),
            "process_resident_memory_bytes": int(fields[23 - _AFTER_NAME]) * resource.getpagesize(),
            "process_start_time_seconds": start_time(clock),
            "process_virtual_memory_bytes": int(fields[22 - _AFTER_NAME]),
        }
        for name, value in found.items():
            yield name, [({}, value)]
