"""Everything that a group's files count, by one set of names for both versions. Standard library only.

Times are nanoseconds, memory bytes. What the kernel does not count is left out.
"""

from __future__ import annotations

import os

from lastcall.cri.sandbox.cgroups import files

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_V1_MEMORY = {
    "cache": "total_cache", "rss": "total_rss", "mapped_file": "total_mapped_file", "swap": "total_swap",
    "pgfault": "total_pgfault", "pgmajfault": "total_pgmajfault",
}  # fmt: skip
_V2_MEMORY = {
    "cache": "file", "rss": "anon", "mapped_file": "file_mapped", "kernel": "kernel", "pgfault": "pgfault",
    "pgmajfault": "pgmajfault",
}  # fmt: skip
_V1_MORE = {
    "failcnt": "memory.failcnt", "max_usage": "memory.max_usage_in_bytes", "kernel": "memory.kmem.usage_in_bytes",
}  # fmt: skip
PRESSURES = ("cpu", "io", "memory")


def of_v1(cpu: str, cpuacct: str, memory: str, pids: str, blkio: str) -> dict[str, int]:
    """The directories of one group; "" for a controller that the machine does not have."""
    found: dict[str, int] = {}
    times, throttling = _lines(f"{cpuacct}/cpuacct.stat"), _lines(f"{cpu}/cpu.stat")
    _take(found, times, {"cpu_user": "user", "cpu_system": "system"}, _TICK_NS)
    names = {"periods": "nr_periods", "throttled_periods": "nr_throttled", "throttled": "throttled_time"}
    _take(found, throttling, names)
    _take(found, _lines(f"{memory}/memory.stat"), _V1_MEMORY)
    for name, file in _V1_MORE.items():
        if (value := files.number(f"{memory}/{file}")) is not None:
            found[name] = value
    _take_limit(found, f"{pids}/pids.max")
    for name, file in (("bytes", "io_service_bytes"), ("operations", "io_serviced")):
        for line in files.read(f"{blkio}/blkio.throttle.{file}").splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in ("Read", "Write"):
                key = f"{words[1].lower()}_{name}"
                found[key] = found.get(key, 0) + int(words[2])
    return found


def of_v2(directory: str) -> dict[str, int]:
    found: dict[str, int] = {}
    cpu = _lines(f"{directory}/cpu.stat")
    _take(found, cpu, {"cpu_user": "user_usec", "cpu_system": "system_usec", "throttled": "throttled_usec"}, 1000)
    _take(found, cpu, {"periods": "nr_periods", "throttled_periods": "nr_throttled"})
    _take(found, _lines(f"{directory}/memory.stat"), _V2_MEMORY)
    _take(found, _lines(f"{directory}/memory.events"), {"failcnt": "max"})
    for name, file in (("max_usage", "memory.peak"), ("swap", "memory.swap.current")):
        if (value := files.number(f"{directory}/{file}")) is not None:
            found[name] = value
    _take_limit(found, f"{directory}/pids.max")
    names = {"rbytes": "read_bytes", "wbytes": "write_bytes", "rios": "read_operations", "wios": "write_operations"}
    for word in files.read(f"{directory}/io.stat").split():
        key, _, number = word.partition("=")
        if key in names and number.isdecimal():
            found[names[key]] = found.get(names[key], 0) + int(number)
    for resource in PRESSURES:
        for line in files.read(f"{directory}/{resource}.pressure").splitlines():
            kind, total = line.partition(" ")[0], line.rpartition("total=")[2]
            if total.isdecimal():
                found[f"{resource}_{kind}"] = int(total) * 1000
    return found


def _lines(path: str) -> dict[str, int]:
    """`key number` lines."""
    pairs = (line.split() for line in files.read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _take(found: dict[str, int], lines: dict[str, int], names: dict[str, str], unit: int = 1) -> None:
    for name, key in names.items():
        if key in lines:
            found[name] = lines[key] * unit


def _take_limit(found: dict[str, int], path: str) -> None:
    """0 when nothing limits."""
    if text := files.read(path).strip():
        found["pids_limit"] = int(text) if text.isdecimal() else 0
