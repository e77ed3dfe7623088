"""Where this cluster's groups go: found by front, made by init, used by the shim, removed at the end.

The directory's name holds the cluster's name, the PID namespace, pid and start time of the process that made it, so
that the next start knows what a killed one left. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re

from lastcall.kube.cri.sandbox.cgroups import files, systemd, unified, v1, v2
from lastcall.kube.cri.sandbox.cgroups.choice import ELSEWHERE, choose, needs_linger, slice_of, user_manager
from lastcall.kube.cri.sandbox.cgroups.others import NoCgroups, OtherHierarchies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from lastcall.kube.cri.sandbox.cgroups.api import Cgroups

_STALE = re.compile(r"lastcall-.*-ns(\d+)-(\d+)-(\d+)")
_OCTAL = re.compile(r"\\([0-7]{3})")


NOT_MOUNTED = "not mounted here"


class Place:
    """`mode` v2, v1 or none; `directories`: controller → the cluster's directory ("" is version 2's only one); `why`
    there is nothing, and how to change that. `emptied` is the group this process left for a leaf of its own.

    `others` has the directories in hierarchies that limit nothing here, by name (`freezer`, `name=systemd`, "" for
    version 2 beside version 1), `shared` those hierarchies, and why, in which containers live in the group of this
    process, because none can be made there. `waiting` is what `settle` needs, where systemd is to be asked.
    `where` is `scope` (of systemd), `own` (below this process's group) or `above`.
    """

    def __init__(
        self,
        mode: str,
        directories: dict[str, str],
        why: str = "",
        emptied: str = "",
        others: dict[str, str] | None = None,
        shared: dict[str, str] | None = None,
        waiting: _Found | None = None,
        where: str = "",
    ) -> None:
        self.mode, self.directories, self.why, self.emptied = mode, directories, why, emptied
        self.others, self.shared = others or {}, shared or {}
        self.waiting, self.where = waiting, where

    @property
    def exists(self) -> bool:
        """Return whether there is anything to remove in the end."""
        return bool(self.directories or self.others)

    def settle(self, pid: int) -> None:
        """Let systemd move the process `pid` (the cluster's first) into a scope, if the groups should be in one.

        If systemd does not do it, take what there is, and put systemd's answer into `why`. Never raises.
        """
        found, self.waiting = self.waiting, None
        if found is None:
            return
        place, why = _in_scope(found, pid)
        if place is None:
            place = _find_place(found, why, [pid])
        else:
            _find_others(place, found.mounts, found.groups, found.name)
        self.__dict__.update(place.__dict__)

    def ends_at_logout(self) -> str:
        """Return why a cluster that should stay ends when its user logs out; "" if it does not. Front asks."""
        uid, own = os.getuid(), parse_groups(files.read("/proc/self/cgroup")).get("", "")
        if not needs_linger(own, uid, in_scope=self.where == "scope") or systemd.lingers(uid):
            return ""
        return "this user's systemd has it, and ends 10 s after the last session"

    def take(self, facts: dict[str, Any]) -> None:
        """Take over the `facts` that another process found."""
        self.mode, self.directories, self.why = facts["mode"], facts["directories"], facts["why"]
        self.others, self.waiting = facts["others"], None

    def facts(self) -> dict[str, Any]:
        """Return the facts for JSON: init and the shim get them."""
        return {"mode": self.mode, "directories": self.directories, "why": self.why, "others": self.others}

    def create(self) -> None:
        """Make the directories. If they cannot be made, there is no place, and `why` says the reason."""
        for controller, directory in list(self.directories.items()):
            try:
                _make(directory)
            except OSError as error:
                self.why = f"cgroup {self.mode}: {directory}: {error.strerror}"
                del self.directories[controller]
        for name, directory in list(self.others.items()):
            try:
                _make(directory)
            except OSError as error:
                self.shared[name] = error.strerror or str(error)
                files.remove(directory)
                del self.others[name]
        if self.mode != "none" and not {"", "memory", "pids"} & self.directories.keys():
            for directory in dict.fromkeys(self.directories.values()):
                files.remove(directory)
            self.mode, self.directories = "none", {}

    def controllers(self) -> list[str]:
        """Return what can be limited and counted here, of cpu, memory and pids."""
        if self.mode == "v2":
            # The same as its own `cgroup.controllers`, which is not there before `create`.
            above = os.path.dirname(self.directories[""])
            have = files.read(f"{above}/cgroup.subtree_control").split()
        else:
            have = list(self.directories)
        return [controller for controller in v2.CONTROLLERS if controller in have]

    def thaw(self) -> None:
        """Let frozen processes go on, which nothing else ends."""
        if "freezer" in self.others:
            files.thaw(self.others["freezer"])

    def remove_node(self, node: str) -> None:
        """Remove the groups of one node (`open_cgroups`), whose processes have ended. Never raises."""
        for directory in dict.fromkeys(f"{tree}/{node}" for tree in self.directories.values()):
            if os.path.isdir(directory):
                files.kill(directory, self.thaw)
                files.remove(directory)

    def remove(self) -> bool:
        """End what still lives in the groups and remove them; return True if nothing is left. Idempotent.

        The process that made the place comes back to where it was.
        """
        gone = True
        for directory in dict.fromkeys([*self.directories.values(), *self.others.values()]):
            if os.path.isdir(directory):
                files.kill(directory, self.thaw)
                gone = files.remove(directory) and gone
        if self.emptied and gone:
            unified.come_back(self.emptied, [os.getpid()])
        return gone


def open_cgroups(facts: dict[str, Any]) -> Cgroups:
    """Return the implementation for what `Place.facts` says, below a group of the `node` that it names, if it does."""
    others, node = OtherHierarchies(facts.get("others") or {}), facts.get("node") or ""
    if facts["mode"] == "v2":
        return v2.CgroupsV2(v2.make_below(facts["directories"][""], node), others)
    if facts["mode"] == "v1":
        return v1.CgroupsV1({name: f"{tree}/{node}".rstrip("/") for name, tree in facts["directories"].items()}, others)
    return NoCgroups(facts["why"], others)


def make_place(cluster: str, mountinfo: str = "", own_groups: str = "") -> Place:
    """Find a place and remove what killed clusters left there. Never raises.

    `settle` follows, when the process is there that a scope of systemd begins with; then `create` makes the
    directories. The arguments are the texts of /proc/self/mountinfo and /proc/self/cgroup.
    """
    mounts = parse_mounts(mountinfo or files.read("/proc/self/mountinfo"))
    groups = parse_groups(own_groups or files.read("/proc/self/cgroup"))
    name = f"lastcall-{cluster}-ns{_pid_namespace()}-{os.getpid()}-{_start_time(os.getpid())}"
    freezer = _own(mounts, groups, "freezer")
    if freezer:
        sweep(freezer)  # first: what is frozen ends nowhere else
    return _find_place(_Found(mounts, groups, name))


class _Found:
    """Where this process is, by hierarchy, and what the cluster's groups are called."""

    def __init__(self, mounts: dict[str, tuple[str, str]], groups: dict[str, str], name: str) -> None:
        self.mounts, self.groups, self.name = mounts, groups, name


def _find_place(found: _Found, refused: str = "", more: Sequence[int] = ()) -> Place:
    """`refused` is why systemd gave no scope, if it was asked; `more` are processes of ours beside this one."""
    place, why = _unified(found, refused, more)
    if place is None:
        place, separate_why = _separate(found.mounts, found.groups, found.name)
        why = why if place is None and not separate_why else separate_why
    place = place or Place("none", {}, why or "no cgroup hierarchy is mounted")
    if place.waiting is None:
        _find_others(place, found.mounts, found.groups, found.name)
    return place


# -- version 2 ---------------------------------------------------------------------------------------------------------


def _unified(found: _Found, refused: str = "", more: Sequence[int] = ()) -> tuple[Place | None, str]:
    if "" not in found.mounts or "" not in found.groups:
        return None, ""
    point, own = found.mounts[""][0], _own(found.mounts, found.groups, "")
    ours = [*unified.own_processes(), *more]
    choice = choose(unified.look(point, own, ours, systemd=systemd.runs(), refused=refused))
    if choice.kind == "scope":
        return Place("none", {}, "systemd was not asked yet", waiting=found), ""
    if choice.kind == "none":
        return None, choice.why
    if choice.kind == "below" and (why := unified.move_to_leaf(choice.path, ours)):
        return None, why
    sweep(choice.path)
    directories = {"": f"{choice.path}/{found.name}"}
    if choice.kind == "below":
        return Place("v2", directories, emptied=choice.path, where="own"), ""
    return Place("v2", directories, where="above"), ""


def _in_scope(found: _Found, pid: int) -> tuple[Place | None, str]:
    """The place in a new scope that has the process `pid`; or why there is none."""
    point, root = found.mounts[""]
    uid = os.getuid()
    slice_ = slice_of(found.groups[""], user_manager(uid))
    group, why = systemd.start_scope(f"{found.name}.scope", pid, slice_)
    scope = _below(point, root, group) if group else ""
    if not scope:
        return None, why or ELSEWHERE
    if why := unified.move_to_leaf(scope, [pid]):
        return None, why
    return Place("v2", {"": f"{scope}/{found.name}"}, where="scope"), ""


# -- version 1 ---------------------------------------------------------------------------------------------------------


def _separate(mounts: dict[str, tuple[str, str]], groups: dict[str, str], name: str) -> tuple[Place | None, str]:
    directories: dict[str, str] = {}
    why = ""
    for controller in v1.CONTROLLERS:
        if controller not in mounts or controller not in groups:
            continue
        own = _own(mounts, groups, controller)
        if not own:
            continue
        if not os.access(own, os.W_OK):
            why = "cgroup v1 belongs to root: only root can set limits with it"
            continue
        sweep(own)
        directories[controller] = f"{own}/{name}"
    if "memory" in directories or "pids" in directories:
        return Place("v1", directories), ""
    return None, why


# -- all the others ----------------------------------------------------------------------------------------------------


def _find_others(place: Place, mounts: dict[str, tuple[str, str]], groups: dict[str, str], name: str) -> None:
    """Where this process is in the hierarchies that `place` does not have yet."""
    taken = set(place.directories.values())
    for hierarchy in groups:
        own = _own(mounts, groups, hierarchy)
        directory = f"{own}/{name}"
        if directory in taken or (hierarchy == "" and place.mode == "v2"):
            continue
        if not own:
            place.shared[hierarchy] = NOT_MOUNTED
        elif not unified.is_writable(own):
            place.shared[hierarchy] = "root's" if os.getuid() else "read-only"
        else:
            sweep(own)
            place.others[hierarchy] = directory
            taken.add(directory)


def _make(directory: str) -> None:
    """Make the cluster's group in one hierarchy. Raises OSError, also where it could not have a process."""
    os.makedirs(directory, 0o755, exist_ok=True)
    if not os.path.exists(f"{directory}/cpuset.cpus") or not os.path.exists(f"{directory}/cgroup.clone_children"):
        return  # version 2's groups begin with all of what those above have
    for name in ("cpuset.cpus", "cpuset.mems"):
        files.write(f"{directory}/{name}", files.read(f"{os.path.dirname(directory)}/{name}").strip())
    files.write(f"{directory}/cgroup.clone_children", "1")  # those below begin with what this one has


# -- helpers -----------------------------------------------------------------------------------------------------------


def sweep(parent: str) -> None:
    """Remove what clusters left whose process is gone. Those of another PID namespace may still live."""
    try:
        names = sorted(os.listdir(parent))
    except OSError:
        return
    for name in names:
        found = _STALE.fullmatch(name)
        if found is None or int(found[1]) != _pid_namespace() or _start_time(int(found[2])) == int(found[3]):
            continue
        left = f"{parent}/{name}"
        files.kill(left, lambda left=left: files.thaw(left))  # type: ignore[misc]
        files.remove(left)


def parse_mounts(text: str) -> dict[str, tuple[str, str]]:
    """Return controller → (mount point, the group mounted there); "" is version 2. The first mount of each counts."""
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        point, root = (_OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[index]) for index in (4, 3))
        for controller in [""] if kind[0] == "cgroup2" else kind[2].split(","):
            found.setdefault(controller, (point, root))
    return found


def parse_groups(text: str) -> dict[str, str]:
    """Return controller → this process's group; "" is version 2."""
    found = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _own(mounts: dict[str, tuple[str, str]], groups: dict[str, str], hierarchy: str) -> str:
    """The directory of this process's group; "" when it cannot be seen here."""
    if hierarchy not in mounts or hierarchy not in groups:
        return ""
    return _below(*mounts[hierarchy], groups[hierarchy])


def _below(point: str, root: str, group: str) -> str:
    """The directory of a group; "" when it is not below what is mounted."""
    if root in ("", "/"):
        return (point + group).rstrip("/") if "/.." not in group else ""
    if group == root or group.startswith(f"{root}/"):
        return (point + group[len(root) :]).rstrip("/")
    # In a container without a cgroup namespace of its own the names are the host's.
    return point if group == "/" else ""


def _pid_namespace() -> int:
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino
    return 0


def _start_time(pid: int) -> int:
    """Clock ticks since boot; 0 when there is no such process."""
    text = files.read(f"/proc/{pid}/stat")
    fields = text[text.rfind(")") + 2 :].split() if text else []
    return int(fields[19]) if len(fields) > 19 else 0
