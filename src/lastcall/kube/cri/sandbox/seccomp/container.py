"""Which filter a container gets, as bytes for its shim; made once for each profile and set of capabilities."""

from __future__ import annotations

import base64
import functools
import json
import os

from lastcall.kube.cri.sandbox.seccomp import bpf, default_profile, profile
from lastcall.kube.cri.sandbox.seccomp.syscalls import MACHINES
from lastcall.world import privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNCONFINED = "Unconfined"

_CLONE_NEWUSER = 0x1000_0000
_HELPER_CALL = 0x3FFF  # shim/single_id/filter.py:HELPER_CALL


def seccomp_available() -> bool:
    """Return whether this kernel takes filters and we can make some for this machine. Otherwise one asked for fails."""
    return os.uname().machine in MACHINES and privileges.has_seccomp_filters()


def container_filter(
    profile_type: str, localhost_ref: str, capabilities: frozenset[str], *, single_user_id: bool
) -> dict[str, Any]:
    """Return `{"name", "program"}` for the shim, the program in base64; Unconfined has none. Raises ProfileError.

    `capabilities` are the container's (`CAP_CHOWN`). With a single user id a profile does not get in the way of the
    program by which a process becomes another user. The file of a Localhost profile is read every time: it may change.
    """
    if profile_type == UNCONFINED:
        return {"name": UNCONFINED, "program": ""}
    if profile_type == default_profile.NAME:
        text, name = "", default_profile.NAME
    else:
        text, name = json.dumps(profile.load_profile(localhost_ref)), f"Localhost {localhost_ref}"
    machine = os.uname().machine
    return {"name": name, "program": _program(text, machine, capabilities, single_user_id)}


@functools.lru_cache(maxsize=64)
def _program(text: str, machine: str, capabilities: frozenset[str], single_user_id: bool) -> str:
    found = json.loads(text) if text else default_profile.default_profile()
    more = _for_single_user_id(machine) if single_user_id else {}
    return base64.b64encode(profile.compile_profile(found, machine, capabilities, more)).decode()


def _for_single_user_id(machine: str) -> dict[str, list[bpf.Rule]]:
    return {
        "unshare": [bpf.Rule(bpf.ALLOW, [bpf.Condition(0, "EQ", _CLONE_NEWUSER)])],
        str(_HELPER_CALL): [bpf.Rule(bpf.ALLOW)],
    }
