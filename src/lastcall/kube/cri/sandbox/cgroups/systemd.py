"""Asks systemd for a delegated scope, as runc and podman do, with systemd's own `busctl`. Standard library only."""

# check: starts processes because it runs busctl

from __future__ import annotations

import os

from lastcall.kube.cri.sandbox.cgroups import files
from lastcall.world import blocking

ANSWERS_WITHIN_SECONDS = 25.0
"""All of it: the answer, and the move of the process. As long as clients of D-Bus wait: a machine that swaps, or that
starts the user's systemd at this moment, takes more than 10."""
_LOOK_AGAIN_SECONDS = 0.003
_FIRST_PID_NAMESPACE = 0xEFFF_FFFC
"""Its inode (Linux include/linux/proc_ns.h:PROC_PID_INIT_INO)."""

NO_MANAGER = "no systemd runs for this user"
NO_BUS = "systemd cannot be asked"


def runs() -> bool:
    """Return whether systemd runs here, and knows processes by the pids that we know them by."""
    if not os.path.isdir("/run/systemd/system"):  # sd_booted(3)
        return False
    try:
        if os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE:
            return True
    except OSError:
        return False
    return files.read("/proc/1/comm").strip() == "systemd" and os.readlink("/proc/self") == str(os.getpid())


def lingers(uid: int) -> bool:
    """Return whether the systemd of `uid` stays when nobody is logged in (loginctl(1), enable-linger)."""
    try:
        # late: only where a scope is in the user's systemd
        import pwd

        return os.path.exists(f"/var/lib/systemd/linger/{pwd.getpwuid(uid).pw_name}")
    except KeyError:
        return False


def call(unit: str, pid: int, slice_: str, uid: int) -> list[str]:
    """Return the command that starts the scope `unit` with the process `pid` in it. Pure.

    Source: org.freedesktop.systemd1(5), StartTransientUnit; podman's and runc's properties. `Delegate` is for all
    controllers. Without `TasksMax` systemd allows 15 % of what the machine does.
    """
    address = f"--address=unix:path=/run/user/{uid}/bus" if uid else "--system"
    properties = [
        ["Description", "s", "Pods of a lastcall cluster"],
        ["PIDs", "au", "1", str(pid)],
        ["Delegate", "b", "true"],
        ["CollectMode", "s", "inactive-or-failed"],
        ["TasksMax", "t", str(2**64 - 1)],
        ["TimeoutStopUSec", "t", "10000000"],
        *([["Slice", "s", slice_]] if slice_ else []),
    ]
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    return [
        *("busctl", "--quiet", f"--timeout={ANSWERS_WITHIN_SECONDS:g}", address, "call", *manager),
        *("StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", str(len(properties))),
        *(word for each in properties for word in each),
        "0",
    ]


def start_scope(unit: str, pid: int, slice_: str) -> tuple[str, str]:
    """Move the process `pid` into a new delegated scope; return (its group, ""), or ("", why not). Never raises."""
    uid = os.getuid()
    if uid and not os.path.exists(f"/run/user/{uid}/bus"):
        started = os.path.exists(f"/run/user/{uid}/systemd/private")
        return "", f"{NO_BUS}: there is no /run/user/{uid}/bus" if started else NO_MANAGER
    until = blocking.monotonic() + ANSWERS_WITHIN_SECONDS
    why = _run(call(unit, pid, slice_, uid))
    if why:
        return "", f"{NO_BUS}: {why}"
    while True:
        group = next((line[3:] for line in files.read(f"/proc/{pid}/cgroup").splitlines() if line[:3] == "0::"), "")
        if group.endswith(f"/{unit}"):
            return group, ""
        if blocking.monotonic() > until:
            return "", f"{NO_BUS}: it left the process where it was"
        blocking.sleep(_LOOK_AGAIN_SECONDS)


def _run(command: list[str]) -> str:
    """Why the command failed, in one line; "" if it did not."""
    # late: only where systemd is asked
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 (systemd's own program)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=ANSWERS_WITHIN_SECONDS,
        )
    except FileNotFoundError:
        return "busctl is not installed"
    except subprocess.TimeoutExpired:
        return f"no answer within {ANSWERS_WITHIN_SECONDS:g} s"
    except OSError as error:
        return error.strerror or str(error)
    if not done.returncode:
        return ""
    lines = done.stderr.decode(errors="replace").split("\n")
    said = [line for line in lines if line.strip()]
    return " ".join(said[-1].split()) if said else f"busctl ended with exit status {done.returncode}"
