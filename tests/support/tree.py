"""Looks at a running lastcall from outside: its processes by role, its namespaces, and what it left behind."""

import os
import re
import time
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from waiting import PATIENCE


def children(pid: int) -> list[int]:
    """Direct children, [] when the process is gone."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def cmdline(pid: int) -> list[str]:
    try:
        return [word.decode(errors="replace") for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


class Namespaces(dict[str, str]):
    """Kind → link of a process's namespaces. They are held open as long as this lives: the kernel gives the number of
    a namespace that is gone to the next new one, which may be another cluster's."""

    def __init__(self, pid: int) -> None:
        self._fds: list[int] = []
        super().__init__()
        for kind in ("pid", "net", "mnt", "user"):
            self._fds.append(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY))
            self[kind] = os.readlink(f"/proc/self/fd/{self._fds[-1]}")

    def __del__(self) -> None:
        for fd in self._fds:
            os.close(fd)


@dataclass
class Tree:
    """The process tree below one front."""

    front: int
    init: int
    roles: dict[str, int]
    namespaces: dict[str, str] = field(default_factory=dict)

    @classmethod
    def find(cls, front: int, timeout: float = 60.0) -> "Tree":
        """Wait until front's tree is complete."""
        deadline = time.monotonic() + timeout * PATIENCE
        while time.monotonic() < deadline:
            for init in children(front):
                roles = {comm(pid): pid for pid in children(init)}
                if {"lastcall-contro", "lastcall-node-1", "lastcall-shim-1"} <= roles.keys():
                    namespaces = Namespaces(init)
                    return cls(
                        front,
                        init,
                        {
                            "front": front,
                            "init": init,
                            "control-plane": roles["lastcall-contro"],
                            "node": roles["lastcall-node-1"],
                            "shim": roles["lastcall-shim-1"],
                        },
                        namespaces,
                    )
            time.sleep(0.01)  # pause of a poll
        raise AssertionError(f"no complete tree below {front}: {[(pid, comm(pid)) for pid in descendants(front)]}")

    def containers(self) -> list[int]:
        """Host pids of the containers' PID 1 and of running execs: the shim's children."""
        return children(self.roles["shim"])


def clock_ticks() -> int:
    """Now, as /proc/<pid>/stat counts: ticks since the machine started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def started_at(pid: int) -> int:
    """When a process started, in clock ticks; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return 0


def processes_in(namespaces: dict[str, str], started_before: int | None = None) -> list[tuple[int, str]]:
    """Every process of the machine that is still in one of the given namespaces.

    Where nobody held them open what started after `started_before` (clock ticks, when they still lived) belongs to
    somebody else, whatever the number says.
    """
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or (started_before is not None and started_at(int(entry)) > started_before):
            continue
        for kind, link in namespaces.items():
            try:
                if os.readlink(f"/proc/{entry}/ns/{kind}") == link:
                    found.append((int(entry), comm(int(entry))))
                    break
            except OSError:
                continue
    return found


def cgroups_named(pattern: str) -> list[str]:
    """The control groups of this machine whose whole path fits (`*` stands for anything, slashes too).

    By os.walk and not glob: those of other clusters may go while this looks.
    """
    found = [f"{parent}/{name}" for parent, names, _ in os.walk("/sys/fs/cgroup") for name in names]
    return [path for path in found if fnmatch(path, pattern)]


_NAMED_NAMESPACE = re.compile(r" /run/netns/lastcall-test-(\d+)-\S+ ")


def named_namespace(name: str) -> str:
    """What a test calls a network namespace that it makes with `ip netns add`: tests beside it know whose it is."""
    return f"lastcall-test-{os.getpid()}-{name}"


def is_of_another_test(mount: str) -> bool:
    """Whether a line of mountinfo is the named network namespace of a test that another process runs just now.

    So is the folder of all of them, which the first `ip netns add` of a machine mounts onto itself.
    """
    if mount.split(" ")[4] == "/run/netns":
        return True
    match = _NAMED_NAMESPACE.search(mount)
    return match is not None and int(match[1]) != os.getpid() and Path("/proc", match[1]).exists()


@dataclass(frozen=True)
class MachineState:
    """What a clean machine must look like again afterwards.

    Files are those of the test. Mounts and links are the machine's: others may make some meanwhile, and take them away.
    """

    mounts: frozenset[str]
    links: frozenset[str]
    state_files: frozenset[str]

    @classmethod
    def take(cls, home: Path) -> "MachineState":
        """`home` is the HOME (and XDG and TMPDIR root) that the tested commands are given."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        mounts = frozenset(line.split(" ", 3)[3] for line in lines if not is_of_another_test(line))
        links = frozenset(os.listdir("/sys/class/net"))
        files = frozenset(str(path) for path in home.rglob("*"))
        return cls(mounts, links, files)


class Leftovers(AssertionError):
    """Something that only this test made is still there: one failure is proof (docs/testing.md)."""

    proof = True


def assert_clean(
    before: MachineState,
    home: Path,
    namespaces: dict[str, str],
    timeout: float = 60.0,
    started_before: int | None = None,
) -> None:
    """Nothing is left: no process in the cluster's namespaces, no mount, no link, no file."""
    deadline = time.monotonic() + timeout * PATIENCE
    while (left := processes_in(namespaces, started_before)) and time.monotonic() < deadline:
        time.sleep(0.02)  # pause of a poll
    if left:
        raise Leftovers(f"processes left behind: {left}")
    assert_nothing_stays(before, home, timeout)


def assert_nothing_stays(before: MachineState, home: Path, timeout: float = 60.0, kept: tuple[str, ...] = ()) -> None:
    """No new file but those that begin with `kept`, no new mount, no new link."""
    after = MachineState.take(home)
    files = sorted(path for path in after.state_files - before.state_files if not path.startswith(kept or ("\0",)))
    if files:
        raise Leftovers(f"files left behind: {files}")
    assert after.state_files >= before.state_files, f"files taken away: {before.state_files - after.state_files}"
    left = (after.mounts - before.mounts) | (after.links - before.links)
    deadline = time.monotonic() + timeout * PATIENCE
    while left and time.monotonic() < deadline:
        time.sleep(0.02)  # pause of a poll
        after = MachineState.take(home)
        left &= after.mounts | after.links
    assert not left, f"mounts and links left behind: {sorted(left)}"
