"""The control groups that limit containers: what is lost without them, and the command that helps. Pure, as `needs.py`.

`make machines` tries each command in machines with systemd; docs/machines.md says what came of it.
"""

from lastcall.world.need import Need
from lastcall.world.probes import NOT_TRIED, Machine

NAME = "cgroups"
_WANTED = ("memory", "cpu", "pids")
_SIZES = ("cpu", "memory")
_UNIFIED = "boot with systemd.unified_cgroup_hierarchy=1"
_LINGER = "sudo loginctl enable-linger $USER"
_AS_SERVICE = "sudo systemd-run --uid=$USER -p Delegate=yes --pipe --wait lastcall …"
_DELEGATE_CPU = (
    "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' | "
    "sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload, and log in again"
)


def limits(machine: Machine) -> Need:
    """Judge the probes `cgroups`, `cgroup place` (`scope` of systemd, `own` or `above`) and `logout`."""
    probe = machine.probes.get("cgroups", NOT_TRIED)
    if not probe.ok:
        lose = (
            "no memory, CPU and process limits (only RLIMIT_NPROC bounds processes); "
            "an out-of-memory kill is inferred, not observed"
        )
        return Need(NAME, "degraded", probe.detail, lose, _fix(machine, probe.detail))
    where = machine.probes.get("cgroup place", NOT_TRIED).detail
    mode, _, have = probe.detail.partition(": ")
    missing = [controller for controller in _WANTED if controller not in have.split()]
    if missing:
        found = f"cgroup {mode} without {', '.join(missing)}"
        lose = f"no limits for {', '.join(missing)}" + (
            "; an out-of-memory kill is inferred" if "memory" in missing else ""
        )
        return Need(NAME, "degraded", found, lose, _fix_of_controllers(machine, where))
    found = f"cgroup {mode}: {have}" + (", in a scope of systemd" if where == "scope" else "")
    logout = machine.probes.get("logout")
    if logout is None or logout.ok:
        return Need(NAME, "ok", found)
    return Need(NAME, "ok", f"{found}; {logout.detail}", "a cluster of `lastcall up --detach` at logout", _LINGER)


def node_sizes(machine: Machine) -> Need:
    """Judge the probe `cgroups`: what of `--node-capacity` the kernel enforces."""
    name = "sizes of nodes"
    probe = machine.probes.get("cgroups", NOT_TRIED)
    have = probe.detail.partition(": ")[2].split() if probe.ok else []
    enforced = [each for each in _SIZES if each in have]
    if not enforced:
        return Need(
            name, "ok", "declared only: the scheduler counts with --node-capacity, no control group enforces it"
        )
    rest = [each for each in _SIZES if each not in have]
    return Need(
        name,
        "ok",
        f"control groups enforce {' and '.join(enforced)} of --node-capacity"
        + (f"; {' and '.join(rest)} is declared only" if rest else ""),
    )


def _fix(machine: Machine, why: str) -> str:
    if "no systemd runs for this user" in why:
        return f"{_LINGER}; or for one command: {_AS_SERVICE}"
    if "systemd cannot be asked" in why:
        return _scope(machine)
    return _UNIFIED if machine.cgroup_v1 else ""


def _fix_of_controllers(machine: Machine, where: str) -> str:
    """A scope has the controllers of the user's systemd, a group of our own those that its maker asked for."""
    if where == "scope":
        return _DELEGATE_CPU if machine.uid else ""
    return _scope(machine) if where == "own" else ""


def _scope(machine: Machine) -> str:
    """systemd-run needs no bus: it knows systemd's own socket."""
    return f"systemd-run {'--user ' if machine.uid else ''}--scope -p Delegate=yes lastcall …"
