"""Memory of this machine, as /proc/meminfo says it."""

from pathlib import Path


def parse_meminfo(text: str) -> dict[str, int]:
    """Return the figures that are amounts of memory by name, in bytes. Raises ValueError."""
    lines = (line.partition(":") for line in text.splitlines() if line.endswith(" kB"))
    return {name: int(rest.removesuffix(" kB")) * 1024 for name, _, rest in lines}


def read_meminfo() -> dict[str, int]:
    """Return this machine's figures by name, in bytes. Raises OSError, ValueError."""
    return parse_meminfo(Path("/proc/meminfo").read_text())
