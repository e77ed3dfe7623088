"""Figures and the machine they were taken on."""

import compileall
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def machine() -> str:
    """Describe the machine in one line: kernel, CPUs, memory, Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    user = "root" if os.getuid() == 0 else "an ordinary user"
    return (
        f"Linux {platform.release()}, {os.cpu_count()} CPUs, {memory:.0f} GiB, "
        f"Python {platform.python_version()}, as {user}"
    )


def as_installed(checkout: Path) -> None:
    """Compile the modules of a checkout, as an installer does. Without it more than half of a start is compilation: of
    what the tests have not imported since it changed, and of all of it where PYTHONDONTWRITEBYTECODE is set."""
    for directory in ("src", "bench"):
        compileall.compile_dir(checkout / directory, quiet=1)


def pss_kib(pid: int) -> int:
    """Return the memory of a process, with its share of what others have, too."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def cpu_seconds(pid: int) -> float:
    """Return what a process has used so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0..1) of the values lie, nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(name: str, values: Sequence[float], unit: str, target: str = "") -> str:
    """Return one Markdown table row: name, n, median, p95, p99, min-max, target."""
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
