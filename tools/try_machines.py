"""Try the built wheel on other distributions: `python tools/try_machines.py [SUITE…]` (bookworm and trixie without).

For each suite of Debian: a root file system by mmdebstrap with nothing but python3-venv and uidmap, the wheel and what
it needs installed there without a network, and then `doctor`, `demo`, `run`, `up`, `down` as root, as a user with
subordinate ids and as one without. The kernel is this machine's. Prints a Markdown table; needs root, mmdebstrap and
about three minutes for each. Nothing stays, but downloads below build/machines.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import release

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "machines"
PYTHON_OF = {"bookworm": "3.11", "trixie": "3.13"}
PACKAGES = "python3,python3-venv,uidmap"
USERS = {"root": "root", "ada": "user with subordinate ids", "ben": "user without"}

ENTER = """
set -e
root=$1; shift
mount --rbind "$root" "$root"; cd "$root"
mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp; mount -t tmpfs tmpfs run
mkdir -p .machine; pivot_root . .machine
exec chroot . /bin/sh -c 'umount -l /.machine; exec "$@"' sh "$@"
"""
"""Into a mount and a PID namespace of its own, whose root is `root`: a chroot could not make user namespaces."""

SET_UP = """
set -e
useradd --create-home ada; useradd --create-home ben; sed -i /^ben:/d /etc/subuid /etc/subgid
python3 -m venv /opt/lastcall
/opt/lastcall/bin/pip install -q --no-index --find-links /opt/wheels lastcall
"""


def run(command: Sequence[str], **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload,no-any-return] # noqa: S603


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Machine:
    """A root file system with lastcall in it."""

    def __init__(self, suite: str, place: Path) -> None:
        self.suite = suite
        self.root = place / suite

    def make(self, wheel: Path) -> None:
        """Make the machine. Raises CalledProcessError with what the program that failed said."""
        archive = KEPT / f"{self.suite}.tar"
        if not archive.exists():
            part = archive.with_suffix(".part.tar")
            options = ["--quiet", "--variant=minbase", f"--include={PACKAGES}"]
            run(["mmdebstrap", *options, self.suite, str(part)], check=True)
            part.rename(archive)
        self.root.mkdir()
        run(["tar", "-xf", str(archive), "-C", str(self.root)], check=True)
        wheels = KEPT / f"wheels-{PYTHON_OF[self.suite]}"
        for older in wheels.glob("lastcall-*"):
            older.unlink()  # pip takes one of the same name for this one
        asked = ["--only-binary=:all:", "--python-version", PYTHON_OF[self.suite]]
        tags = [f"manylinux_{each}_{os.uname().machine}" for each in ("2_28", "2_17")]
        platforms = [word for tag in tags for word in ("--platform", tag)]
        pip = [sys.executable, "-m", "pip", "download", "-q", "-d", str(wheels), *asked, *platforms, str(wheel)]
        run(pip, check=True)
        shutil.copytree(wheels, self.root / "opt" / "wheels")
        shutil.copytree(ROOT / "examples", self.root / "opt" / "examples")
        self.inside("root", "sh", "-c", SET_UP).check_returncode()

    def inside(self, user: str, *command: str) -> "subprocess.CompletedProcess[str]":
        home = "/root" if user == "root" else f"/home/{user}"
        become = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        words = ["env", "-i", f"HOME={home}", "PATH=/opt/lastcall/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        return run([*unshare, "sh", "-c", ENTER, "sh", str(self.root), *become, *words, *command], timeout=600)

    def kernel_and_system(self) -> str:
        answer = self.inside("root", "sh", "-c", '. /etc/os-release; echo "$PRETTY_NAME"; python3 --version')
        return ", ".join(answer.stdout.split("\n")[:2])

    def tried(self, user: str) -> list[str]:
        """Return what came of each command, for a row of the table."""
        doctor = self.inside(user, "lastcall", "doctor", "--output", "json")
        needs = json.loads(doctor.stdout)["needs"]
        less = [need["name"] for need in needs if need["status"] != "ok"]
        return [
            f"ready, all {len(needs)} ok" if not less else f"exit {doctor.returncode}, less: {', '.join(less)}",
            self.outcome(user, 3, "lastcall demo all"),
            self.outcome(user, 0, "lastcall run /opt/examples/term-demo.yaml"),
            self.outcome(user, 0, "lastcall up --detach && lastcall status && lastcall down"),
        ]

    def outcome(self, user: str, wanted: int, command: str) -> str:
        began = time.monotonic()
        done = self.inside(user, "sh", "-c", command)
        took = time.monotonic() - began
        if done.returncode != wanted:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            return f"exit {done.returncode} instead of {wanted}: {' '.join(last)}"
        return f"as expected ({took:.0f} s)"


def main(suites: Sequence[str]) -> int:
    KEPT.mkdir(parents=True, exist_ok=True)
    failed = 0
    say(f"kernel {os.uname().release}, {os.uname().machine}\n")
    say("| machine | as | doctor | demo | run | up, down |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="lastcall-machines-") as name:
        place = Path(name)
        wheel = release.build(ROOT, place / "dist")[1]
        for suite in suites:
            machine = Machine(suite, place)
            machine.make(wheel)
            system = machine.kernel_and_system()
            for user, words in USERS.items():
                outcomes = machine.tried(user)
                failed += sum("instead of" in each for each in outcomes) + outcomes[0].startswith("exit 1")
                say(f"| {system} | {words} | {' | '.join(outcomes)} |")
            shutil.rmtree(machine.root)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or tuple(PYTHON_OF)))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd[0]}: {error.stderr or error}")
