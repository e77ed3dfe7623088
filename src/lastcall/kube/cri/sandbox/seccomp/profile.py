"""Seccomp profiles: the JSON of Docker, Podman and Kubernetes (types as in containers/common pkg/seccomp).

A profile names system calls with actions; a call in no list gets the default action. What names a call that this
machine does not have is skipped, as libseccomp does.
"""

from __future__ import annotations

import json
import os

from lastcall.kube.cri.sandbox.seccomp import bpf
from lastcall.kube.cri.sandbox.seccomp.syscalls import system_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EPERM, ENOSYS = 1, 38
_LARGEST_FILE = 1 << 20

_ACTIONS = {
    "SCMP_ACT_KILL": bpf.KILL_THREAD,
    "SCMP_ACT_KILL_THREAD": bpf.KILL_THREAD,
    "SCMP_ACT_KILL_PROCESS": bpf.KILL_PROCESS,
    "SCMP_ACT_TRAP": bpf.TRAP,
    "SCMP_ACT_TRACE": bpf.TRACE,
    "SCMP_ACT_LOG": bpf.LOG,
    "SCMP_ACT_ALLOW": bpf.ALLOW,
}


class ProfileError(Exception):
    """The profile cannot be used; the text is for the user."""


def compile_profile(
    profile: dict[str, Any],
    machine: str,
    capabilities: frozenset[str],
    first: dict[str, list[bpf.Rule]] | None = None,
) -> bytes:
    """Compile the program for a container with these capabilities (`CAP_CHOWN`). Raises ProfileError.

    `first` has rules, by name or number, that go before those of the profile.

    Calls of another architecture fail with ENOSYS, and so do calls newer than the tables unless the profile allows by
    default: a program then takes an older way (runc libcontainer/seccomp/patchbpf).
    """
    if not isinstance(profile, dict):
        raise ProfileError("decoding seccomp profile failed: it is not a JSON object")
    numbers = system_calls(machine)
    default = _action(profile, "defaultAction", profile.get("defaultErrnoRet"))
    rules: dict[int, list[bpf.Rule]] = {}
    for entry in _list(profile, "syscalls"):
        if not _applies(entry, machine, capabilities):
            continue
        action = _action(entry, "action", entry.get("errnoRet"))
        conditions = [_condition(each) for each in _list(entry, "args")]
        names = [*_list(entry, "names"), *([entry["name"]] if entry.get("name") else [])]
        for name in names:
            if name in numbers:
                # Of calls with conditions any may fit; one without comes last (and makes the others void).
                rules.setdefault(numbers[name], []).append(bpf.Rule(action, conditions))
    for number, found in rules.items():
        rules[number] = sorted(found, key=lambda rule: not rule.conditions)
    for name, before in (first or {}).items():
        number = int(name) if name.isdecimal() else numbers[name]
        rules[number] = [*before, *rules.get(number, [])]
    unknown = None if default in (bpf.ALLOW, bpf.LOG) else (max(numbers.values()) + 1, bpf.errno_action(ENOSYS))
    try:
        return bpf.compile_filter(machine, rules, default, other_architecture=bpf.errno_action(ENOSYS), unknown=unknown)
    except ValueError as error:
        raise ProfileError(str(error)) from error


def _applies(entry: Any, machine: str, capabilities: frozenset[str]) -> bool:
    if not isinstance(entry, dict):
        raise ProfileError("decoding seccomp profile failed: an entry of syscalls is not an object")
    includes, excludes = entry.get("includes") or {}, entry.get("excludes") or {}
    if not all(capability in capabilities for capability in includes.get("caps") or ()):
        return False
    if any(capability in capabilities for capability in excludes.get("caps") or ()):
        return False
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[machine]
    if includes.get("arches") and arch not in includes["arches"]:
        return False
    return arch not in (excludes.get("arches") or ())


def _action(where: dict[str, Any], field: str, errno: Any) -> int:
    name = where.get(field)
    if name == "SCMP_ACT_ERRNO":
        return bpf.errno_action(errno if isinstance(errno, int) else EPERM)
    if name not in _ACTIONS:
        raise ProfileError(f"invalid seccomp action {name!r} in {field}")
    return _ACTIONS[name]


def _condition(argument: Any) -> bpf.Condition:
    try:
        operator = str(argument["op"]).removeprefix("SCMP_CMP_")
        if operator == "MASKED_NE":
            raise ValueError("libseccomp has no such operator")
        return bpf.Condition(argument["index"], operator, argument["value"], argument.get("valueTwo", 0))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProfileError(f"invalid seccomp argument condition {argument!r}: {error}") from error


def _list(where: dict[str, Any], field: str) -> list[Any]:
    value = where.get(field)
    if value is not None and not isinstance(value, list):
        raise ProfileError(f"decoding seccomp profile failed: {field} is not a list")
    return value or []


def load_profile(path: str) -> dict[str, Any]:
    """Load a profile file of the node. Raises ProfileError in containerd's words."""
    try:
        with open(path, encoding="utf-8") as file:
            profile: dict[str, Any] = json.loads(file.read(_LARGEST_FILE))
    except OSError as error:
        words = os.strerror(error.errno or 0).lower()
        raise ProfileError(f'cannot load seccomp profile "{path}": open {path}: {words}') from error
    except ValueError as error:
        raise ProfileError(f'cannot load seccomp profile "{path}": decoding seccomp profile failed: {error}') from error
    return profile
