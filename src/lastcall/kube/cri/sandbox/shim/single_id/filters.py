"""What a container's child does about system call filters, and what the shim then hears of it."""

from __future__ import annotations

import array
import binascii
import contextlib
import os
import socket

from lastcall.kube.cri.sandbox.shim.identity import capability_mask
from lastcall.kube.cri.sandbox.shim.rootfs.confined import SetupError
from lastcall.kube.cri.sandbox.shim.single_id import filter as single_id
from lastcall.world import privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.kube.cri.sandbox.shim.identity import Identity

IdMap = list[tuple[int, int]]


def single_user_id(uids: IdMap) -> bool:
    """Return whether the cluster has only one user id."""
    return sum(count for _, count in uids) <= 1


def prepare(spec: dict[str, Any], uids: IdMap) -> None:
    """Prepare a clone: what is made once is made in the shim, not in every child."""
    if single_user_id(uids) and single_id.available():
        with contextlib.suppress(SetupError):  # the child will say it
            single_id.filter_program(capability_mask(spec))


def helper(uids: IdMap) -> tuple[str, bytes] | None:
    """Return (name in /dev, contents) of the program that makes a process another user; None if none is needed."""
    if not single_user_id(uids) or not single_id.available():
        return None
    return os.path.basename(single_id.HELPER_PATH), single_id.helper_elf(os.uname().machine)


def install(spec: dict[str, Any], who: Identity, capabilities: int, uids: IdMap, status: socket.socket) -> None:
    """Install the filter in the child, as late as it still has the right to. Raises OSError.

    Only root is answered for: another user could not have changed owners or users on any machine.
    """
    if who.uid == 0 and single_user_id(uids) and single_id.available():
        program = single_id.filter_program(capabilities)
        listener = privileges.install_seccomp_filter(program, privileges.SECCOMP_FILTER_FLAG_NEW_LISTENER)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))
        status.sendmsg([b'{"listener":true}'], [rights])
        os.close(listener)  # else the execve of a child whose shim has died would wait for itself
    profile = (spec.get("seccomp") or {}).get("program")
    if profile:
        privileges.install_seccomp_filter(binascii.a2b_base64(profile))
