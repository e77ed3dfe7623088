"""Which control group of version 2 is used: that of this process, one above it, or a new scope of systemd. Pure.

systemd's rule is that each group has one writer (systemd docs/CGROUP_DELEGATION.md): a slice is systemd's, and so is
a service or a scope without `Delegate=`. Standard library only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    Kind = Literal["beside", "below", "scope", "none"]

SHARED = "other processes share this process's cgroup, which keeps its controllers from being handed down"
NOT_DELEGATED = "cgroup v2 is not delegated to this user"
ELSEWHERE = "this process's cgroup is outside of what is mounted here"


class Group:
    """One group as it was found. `delegated`: systemd marked it as another program's; `hands_down`: memory and pids."""

    def __init__(self, path: str, *, delegated: bool = False, hands_down: bool = False, writable: bool = False) -> None:
        self.path, self.delegated, self.hands_down, self.writable = path, delegated, hands_down, writable

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Seen:
    """What is known before anything is made.

    `groups` begins with this process's own and ends with the mounted one. `missing` has those of memory and pids that
    the own group lacks. `alone`: no other process is in it (or it is the root, where that does not matter).
    `limits_here`: version 2 has the controllers on this machine. `systemd` runs; `refused` is its answer, if it gave
    no scope.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        missing: Sequence[str] = (),
        alone: bool = False,
        limits_here: bool = True,
        systemd: bool = False,
        refused: str = "",
    ) -> None:
        self.groups, self.missing, self.alone = tuple(groups), tuple(missing), alone
        self.limits_here, self.systemd, self.refused = limits_here, systemd, refused


class Choice:
    """`beside`: in `path`, which hands controllers down already; `below`: in `path`, this process's own, after the
    process has moved into a leaf; `scope`: in a scope that systemd makes; `none`: nowhere, for the reason `why`."""

    def __init__(self, kind: Kind, path: str = "", why: str = "") -> None:
        self.kind, self.path, self.why = kind, path, why


def choose(seen: Seen) -> Choice:
    """Decide where the cluster's groups go. With `refused` the answer is never `scope`."""
    if not seen.groups:
        return Choice("none", why=ELSEWHERE)
    own_unit = _up_to_the_unit(seen.groups) if seen.systemd else seen.groups
    if not seen.systemd or (own_unit and own_unit[-1].delegated):
        beside = next((each for each in own_unit if _may_have_more(each) and each.hands_down), None)
        if beside is not None:
            return Choice("beside", beside.path)
        if not _why_not_below(seen):
            return Choice("below", seen.groups[0].path)
    if seen.systemd and seen.limits_here and not seen.refused:
        return Choice("scope")
    why = _why_not_below(seen)
    if why and seen.refused:
        return Choice("none", why=seen.refused)
    return Choice("none", why=why) if why else Choice("below", seen.groups[0].path)


def slice_of(own: str, manager: str) -> str:
    """Return the slice that a new scope goes into: that of this process, so that its limits count; "" is the default.

    `own` is this process's group, `manager` the group of the systemd that is asked ("" for the machine's).
    """
    if manager and not own.startswith(f"{manager}/"):
        return ""
    found = ""
    for name in own[len(manager) :].strip("/").split("/"):
        if not name.endswith(".slice"):
            break
        found = name
    return found


def needs_linger(own: str, uid: int, *, in_scope: bool) -> bool:
    """Return whether a cluster ends with the last session of `uid`, unless that user lingers.

    It does where a part of it is below the user's own systemd: logind stops that one 10 s after the last session
    (logind.conf(5), UserStopDelaySec=). A process that stays behind in a session keeps the session, and with it all.
    """
    if own.startswith(f"/user.slice/user-{uid}.slice/user@{uid}.service/"):
        return True
    return uid != 0 and in_scope and not own.startswith(f"/user.slice/user-{uid}.slice/session-")


def user_manager(uid: int) -> str:
    """Return the group of the systemd that `uid` asks: root the machine's, others their own."""
    return f"/user.slice/user-{uid}.slice/user@{uid}.service" if uid else ""


def _may_have_more(group: Group) -> bool:
    return group.writable and not group.name.endswith(".slice")


def _up_to_the_unit(groups: Sequence[Group]) -> Sequence[Group]:
    """The groups of the unit that this process belongs to, its top one last; none outside of services and scopes."""
    for index, group in enumerate(groups):
        if group.name.endswith(".slice"):
            return ()
        if group.name.endswith((".scope", ".service")):
            return groups[: index + 1]
    return ()


def _why_not_below(seen: Seen) -> str:
    own = seen.groups[0]
    if seen.missing:
        return f"cgroup v2 has no {' and no '.join(seen.missing)} controller here"
    if not _may_have_more(own):
        return NOT_DELEGATED
    return "" if seen.alone else SHARED
