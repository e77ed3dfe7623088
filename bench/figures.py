"""Figures and the machine they were taken on."""

import os
import platform
import statistics
from collections.abc import Sequence


def machine() -> str:
    """One line: kernel, CPUs, memory, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    user = "root" if os.getuid() == 0 else "an ordinary user"
    return (
        f"Linux {platform.release()}, {os.cpu_count()} CPUs, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, as {user}"
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of the values lie, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name: str, values: Sequence[float], unit: str, target: str = "") -> str:
    """One Markdown table row: name, n, median, p95, p99, min-max, target."""
    cells = [
        name,
        str(len(values)),
        f"{statistics.median(values):.1f} {unit}",
        f"{percentile(values, 0.95):.1f}",
        f"{percentile(values, 0.99):.1f}",
        f"{min(values):.1f}-{max(values):.1f}",
        target,
    ]
    return "| " + " | ".join(cells) + " |"


HEADER = "| figure | n | median | p95 | p99 | min-max | target |\n|---|---|---|---|---|---|---|"
