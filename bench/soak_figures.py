"""What a running cluster takes of the machine, looked up from outside, and how that goes with the Pods that were."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bench.figures import pss_kib

ROLES = {"lastcall-init": "init", "lastcall-contro": "control-plane", "lastcall-node-1": "node-1"}


@dataclass(frozen=True)
class Sample:
    """The figures at one moment: after `pods` had gone, `seconds` after the first was made."""

    pods: int
    seconds: float
    figures: dict[str, float]


def fit(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope of the least-squares line through three points or more, and its standard error."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    sxx = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sxx
    left = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
    return slope, (left / (n - 2) / sxx) ** 0.5


def look(pods: int, seconds: float, front: int, counts: dict[str, float]) -> Sample:
    """Take a sample; `counts` are figures from the API."""
    roles = _roles(front)
    figures: dict[str, float] = {}
    for role, pid in roles.items():
        figures[f"PSS {role}"] = float(pss_kib(pid))
    for role, pid in roles.items():
        figures[f"fds {role}"] = float(len(os.listdir(f"/proc/{pid}/fd")))
    root = f"/proc/{roles['init']}/root/lastcall"
    for name, path in (("tmpfs", root), ("durable tmpfs", f"{root}/durable"), ("shim tmpfs", f"{root}/shim-1")):
        space = os.statvfs(path)
        figures[f"{name}, KiB"] = (space.f_blocks - space.f_bfree) * space.f_frsize / 1024
        figures[f"{name}, inodes"] = float(space.f_files - space.f_ffree)
    figures["store, KiB"] = sum(
        os.stat(f"{root}/durable/{name}").st_size / 1024 for name in os.listdir(f"{root}/durable") if "sqlite" in name
    )
    for name, path in (
        ("records", "durable/runtime"),
        ("containers", "containers"),
        ("journals", "shim-1/processes"),
        ("Pods' directories", "pods/pods"),
        ("logs", "log/pods"),
        ("links to logs", "log/containers"),
    ):
        with suppress(FileNotFoundError):
            figures[name] = float(len(os.listdir(f"{root}/{path}")))
    for role in ("init", "shim-1"):
        with open(f"/proc/{roles[role]}/mountinfo", "rb") as file:
            figures[f"mounts {role}"] = float(sum(1 for _ in file))
    with open(f"/proc/{roles['node-1']}/net/dev", "rb") as file:
        figures["links"] = float(sum(1 for _ in file) - 2)
    figures["control groups"] = float(_groups(roles["init"]))
    figures["processes"] = float(len(_tree(roles["init"])))
    figures["network namespaces"] = float(len(_namespaces(_tree(roles["init"]))))
    return Sample(pods, seconds, {**figures, **counts})


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def _tree(pid: int) -> list[int]:
    return [pid, *(each for child in _children(pid) for each in _tree(child))]


def _roles(front: int) -> dict[str, int]:
    (init,) = _children(front)
    roles = {"front": front, "init": init}
    for pid in _children(init):
        with open(f"/proc/{pid}/comm") as file:
            name = file.read().strip()
        if name in ROLES:
            roles[ROLES[name]] = pid
        elif "shim" in name or "shim" in _command(pid):
            roles["shim-1"] = pid
    return roles


def _command(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().replace("\0", " ")


def _namespaces(pids: Sequence[int]) -> set[str]:
    found = set()
    for pid in pids:
        with suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
    return found


def _groups(init: int) -> int:
    """Control groups of the cluster, in all hierarchies."""
    count = 0
    for path, _, _ in os.walk("/sys/fs/cgroup"):
        if "/lastcall-soak-" in path:
            count += 1
    return count
