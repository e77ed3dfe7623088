"""Who a container's process is: user, groups, capabilities. Used by the child, inside the container's root."""

from __future__ import annotations

import contextlib
import os
import stat

from lastcall.kube.cri.sandbox.shim.rootfs.confined import SetupError
from lastcall.world import linux, privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEFAULT_CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
)
"""containerd pkg/oci/spec.go:defaultUnixCaps."""

_LARGEST_FILE = 1 << 20


class Identity:
    """The ids a process gets, and the home directory that goes with them."""

    def __init__(self, uid: int, gid: int, groups: list[int], home: str) -> None:
        self.uid, self.gid, self.groups, self.home = uid, gid, groups, home


def resolve(user: dict[str, Any]) -> Identity:
    """Look up the user in this root's /etc/passwd and /etc/group. Raises SetupError for an unknown name.

    `user`: `uid` and `gid` (None: the image's), `name` (the image's `user[:group]`), `groups` (supplementary, numbers),
    `strictGroups` (the groups of /etc/group do not count).
    Source: containerd pkg/oci/spec_opts.go:WithUser, WithAdditionalGIDs; runc libcontainer/user.
    """
    name, _, group = str(user["name"]).partition(":")
    if user["uid"] is not None:
        name, group = str(user["uid"]), ""
    passwd = _entries("/etc/passwd", 7)
    if name in ("", "0", "root"):
        uid, entry = 0, next((fields for fields in passwd if fields[2] == "0"), None)
    elif name.isdecimal():
        uid, entry = int(name), next((fields for fields in passwd if fields[2] == name), None)
    else:
        entry = next((fields for fields in passwd if fields[0] == name), None)
        if entry is None or not entry[2].isdecimal():
            raise SetupError(f"unable to find user {name}: no matching entries in passwd file")
        uid = int(entry[2])
    gid = int(entry[3]) if entry and entry[3].isdecimal() else 0
    login = entry[0] if entry else ""
    all_groups = _entries("/etc/group", 4)
    if user["gid"] is not None:
        gid = user["gid"]
    elif group.isdecimal():
        gid = int(group)
    elif group:
        found = next((fields for fields in all_groups if fields[0] == group), None)
        if found is None or not found[2].isdecimal():
            raise SetupError(f"unable to find group {group}: no matching entries in group file")
        gid = int(found[2])
    member = [int(f[2]) for f in all_groups if login and login in f[3].split(",") and f[2].isdecimal()]
    if user.get("strictGroups"):
        member = []
    groups = list(dict.fromkeys([gid, *member, *user["groups"]]))
    return Identity(uid, gid, groups, entry[5] if entry and entry[5] else "/")


def _entries(path: str, fields: int) -> list[list[str]]:
    """The lines of a colon-separated file of the image, which may be anything at all."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        text = os.read(fd, _LARGEST_FILE).decode("utf-8", "replace")
    finally:
        os.close(fd)
    found = []
    for line in text.splitlines():
        parts = (line.split(":") + [""] * fields)[:fields]
        if parts[0] and not parts[0].startswith("#"):
            found.append(parts)
    return found


def capability_mask(spec: dict[str, Any]) -> int:
    """Return the capabilities of a spec: defaults plus `add` minus `drop`, `ALL` in either, all if privileged.

    Raises SetupError for an unknown name. Source: containerd internal/cri/server/container_create.go, WithCapabilities.
    """
    everything = (1 << len(privileges.CAPABILITIES)) - 1
    if spec["privileged"]:
        return everything
    add, drop = spec["capabilities"]["add"], spec["capabilities"]["drop"]
    try:
        mask = privileges.capability_mask(DEFAULT_CAPABILITIES)
        if "ALL" in (name.upper() for name in add):
            mask = everything
        if "ALL" in (name.upper() for name in drop):
            mask = 0
        mask |= privileges.capability_mask([name for name in add if name.upper() != "ALL"])
        mask &= ~privileges.capability_mask([name for name in drop if name.upper() != "ALL"])
    except ValueError as error:
        raise SetupError(str(error)) from error
    return mask


def mapped(number: int, id_map: list[tuple[int, int]]) -> bool:
    """Return whether this user namespace has the id."""
    return any(first <= number < first + count for first, count in id_map)


def missing_groups(user: dict[str, Any], maps: tuple[list[tuple[int, int]], list[tuple[int, int]]]) -> list[int]:
    """Return the supplementary groups that were asked for and that a process here cannot be a member of."""
    single = sum(count for _, count in maps[1]) <= 1
    return [gid for gid in user["groups"] if (single and gid != 0) or not mapped(gid, maps[1])]


def assume(
    identity: Identity,
    capabilities: int,
    maps: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    before_the_drop: Callable[[], None] = lambda: None,
) -> None:
    """Become `identity` with at most `capabilities`. The last thing that needs privileges. Raises OSError.

    An id that the cluster's user namespace does not have becomes this process's only id in a user namespace of its own.
    `before_the_drop` is called while the process still may do everything, with its groups set.
    """
    uids, gids = maps
    own_namespace = not mapped(identity.uid, uids) or not mapped(identity.gid, gids)
    if own_namespace:
        linux.unshare(linux.CLONE_NEWUSER)
        linux.set_dumpable(True)  # else its maps would not be its own to write
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{identity.uid} 0 1")
        _write("/proc/self/gid_map", f"{identity.gid} 0 1")
    else:
        groups = [gid for gid in identity.groups if mapped(gid, gids)]
        # Denied with a single mapped id, where there are no other groups to have.
        with contextlib.suppress(PermissionError):
            os.setgroups(groups)
        os.setresgid(identity.gid, identity.gid, identity.gid)
    before_the_drop()
    # Whatever this process executes later can have no more than these.
    privileges.drop_bounding_set(capabilities)
    privileges.clear_ambient_set()
    if not own_namespace:
        os.setresuid(identity.uid, identity.uid, identity.uid)
    if identity.uid == 0:
        _set_capabilities(capabilities)
    elif own_namespace:
        # The maker of a namespace has them all in it; with no_new_privs a file's capabilities would come from those.
        _set_capabilities(0)


def _set_capabilities(mask: int) -> None:
    permitted = privileges.capget()[1] & mask
    privileges.capset(permitted, permitted, 0)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
