"""Tries what `lastcall doctor` proposes about control groups in a machine that may be broken.

It is Debian with systemd and cgroup v2, with root and the ordinary user ada, who may use sudo. In each situation doctor
says what is lost, the commands of its line "to fix it" are run as they stand there, and doctor must not say it again.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DOCTOR = "lastcall doctor --output json"
AS_ADA = "su -l ada -c '{}'"
SERVICE = "systemd-run --quiet --uid=ada --pipe --wait sh -c '{}'"
DROP_IN = "/etc/systemd/system/user@.service.d"
LESS = f"mkdir -p {DROP_IN}; printf '[Service]\\nDelegate=\\nDelegate=memory pids\\n' > {DROP_IN}/10-less.conf"
RELOAD = "systemctl daemon-reload"
LOGGED_OUT = "loginctl terminate-user ada; while systemctl -q is-active user@$(id -u ada); do sleep 1; done"


@dataclass(frozen=True)
class Situation:
    """`enter` runs `{}` there as `user`. `prepare` and `restore` are root's. `finding` is a part of what is found or
    lost; "" says that nothing is, and that there is nothing to fix."""

    name: str
    user: str
    finding: str
    enter: str = "{}"
    prepare: str = ""
    restore: str = ""


NO_LINGER = f"loginctl disable-linger ada; {LOGGED_OUT}"
SITUATIONS = (
    Situation("root logs in", "root", ""),
    Situation("a user logs in", "ada", ""),
    Situation("a user without a session (su -l)", "root", "no systemd runs", AS_ADA, NO_LINGER, NO_LINGER),
    Situation("a service of a user", "root", "no systemd runs", SERVICE, NO_LINGER, NO_LINGER),
    Situation(
        "a service of root that asked for less",
        "root",
        "no limits for cpu",
        # Beside a shell it would ask for a scope, which has cpu.
        "systemd-run --quiet -p Delegate='memory pids' --pipe --wait sh -c 'exec {}'",
    ),
    Situation(
        "root, and no system bus",
        "root",
        "systemd cannot be asked",
        prepare="systemctl stop dbus.socket dbus.service",
        # logind of systemd 257 outlives its bus, but never asks for a new one: then a login gets no session.
        restore="systemctl start dbus.socket; systemctl restart systemd-logind",
    ),
    Situation(
        "a user, and no bus of the user",
        "ada",
        "systemd cannot be asked",
        "systemctl --user -q stop dbus.socket dbus.service; {}",
        restore=LOGGED_OUT,
    ),
    Situation(
        "a user whose systemd has no cpu",
        "ada",
        "no limits for cpu",
        prepare=f"{LESS}; {RELOAD}; {LOGGED_OUT}",
        restore=f"rm -r {DROP_IN}; {RELOAD}; {LOGGED_OUT}",
    ),
    Situation(
        "a terminal of the user's systemd, no linger",
        "ada",
        "at logout",
        "systemd-run --quiet --user --scope sh -c '{}'",
        NO_LINGER,
        NO_LINGER,
    ),
)


class Machine:
    """Runs commands of its users by `ssh`, a command that takes a user and a command line."""

    def __init__(self, ssh: Sequence[str]) -> None:
        self._ssh = ssh

    def run(self, user: str, command: str) -> "subprocess.CompletedProcess[str]":
        whole = [*self._ssh, user, command]
        return subprocess.run(whole, capture_output=True, text=True, timeout=900)  # noqa: S603

    def cgroups(self, situation: Situation, command: str) -> dict[str, str]:
        """Return what doctor found about control groups there. Raises ValueError with what it said instead."""
        done = self.run(situation.user, situation.enter.format(command))
        try:
            needs: list[dict[str, str]] = json.loads(done.stdout)["needs"]
        except ValueError:
            raise ValueError(f"no answer: {done.stderr or done.stdout}") from None
        return next(need for need in needs if need["name"] == "cgroups")


def commands_of(fix: str) -> list[str]:
    """Return the commands of doctor's line, as a person would take them."""
    return [each.removesuffix(", and log in again") for each in fix.split("; or for one command: ")]


def try_one(machine: Machine, situation: Situation) -> tuple[str, list[str]]:
    """Return what was found, and what came of each command. Raises ValueError, with what differs."""
    before = machine.cgroups(situation, DOCTOR)
    said = f"{before['found']}; {before['lose']}" if before["lose"] else before["found"]
    if not situation.finding:
        if before["fix"] or before["status"] != "ok":
            raise ValueError(f"{said}. To fix it: {before['fix'] or 'nothing'}")
        return said, []
    if situation.finding not in said or not before["fix"]:
        raise ValueError(f"{said}. To fix it: {before['fix'] or 'nothing'}")
    helped = []
    for command in reversed(commands_of(before["fix"])):  # what helps for good comes last
        if "lastcall …" in command:
            after = machine.cgroups(situation, command.replace("lastcall …", DOCTOR))
        else:
            done = machine.run("ada", command)
            if done.returncode:
                raise ValueError(f"{command}: {done.stderr}")
            if "log in again" in before["fix"]:
                machine.run("root", LOGGED_OUT)
            after = machine.cgroups(situation, DOCTOR)
        if after["status"] != "ok" or situation.finding in f"{after['found']}; {after['lose']}":
            raise ValueError(f"`{command}` does not help: {after['found']}; {after['lose']}")
        helped.append(f"`{command}`: {after['found']}")
    return said, helped


def tried(machine: Machine, part: str = "") -> Iterator[tuple[str, bool, str]]:
    """Try each situation with `part` in its name: (name, whether everything helped, what was seen)."""
    for situation in SITUATIONS:
        if part not in situation.name:
            continue
        machine.run("root", situation.prepare or "true")
        try:
            said, helped = try_one(machine, situation)
            yield situation.name, True, f"{said} → {'; '.join(helped) or 'nothing to fix'}"
        except (ValueError, subprocess.TimeoutExpired) as error:
            yield situation.name, False, str(error)
        finally:
            machine.run("root", situation.restore or "true")
