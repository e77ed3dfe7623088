"""Try lastcall in guests: `python -m machines [SUITE…]` (trixie and bookworm without); root, qemu, mmdebstrap.

    --user NAME      only as this user (root, ada; ben has no subordinate ids), may be given several times
    --only ROW       only these rows, with `remedies`, `tests` and paths of tests for the other parts; may be given
                     several times
    --keep           leave the guest running, and use one that runs
    --build          build the guests anew, else only what is new in the sources is put into them

Results are kept in $GUEST_HOME (build/guest) and written into docs/machines.md. Exit status 1 if a row fails.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from machines import remedies
from machines.table import KERNEL_TESTS, ROWS, Cell, Machine, machine_of, section, written_into

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "machines.md"
GUEST = str(Path(__file__).with_name("guest"))
HOME = Path(os.environ.get("GUEST_HOME") or PROJECT / "build" / "guest")
SUITES = ("trixie", "bookworm")
SCRIPT = f"rows-{os.getpid()}.sh"
"""What this run has for the guests; another one may be running."""
ROW_SECONDS = 1800
TESTS = (
    "cd /opt/src && LASTCALL_TEST_PATIENCE=10 /opt/lastcall/bin/python -m pytest -q -p no:cacheprovider "
    "-o timeout=3000 --tb=line {} 2>&1 | tail -n 12; exit ${{PIPESTATUS[0]}}"
)
ABOUT = '. /etc/os-release; systemctl --version | { read -r one; echo "$PRETTY_NAME, Linux $(uname -r), ${one%% (*}"; }'
LOGOUT = "for i in $(seq 60); do loginctl list-sessions --no-legend | grep -qw {} || break; sleep 1; done; sleep 15"


def run(*command: str, timeout: float | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)  # noqa: S603


def say(line: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")


class Guest:
    """A guest of `suite`, with what was tried there in earlier runs."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self._kept = HOME / f"{suite}.json"
        self._commit, self._date = commit(), f"{datetime.now(UTC):%Y-%m-%d}"
        self.machine = Machine("", {}, {}, {})
        if self._kept.exists():
            self.machine = machine_of(json.loads(self._kept.read_text()))

    def start(self, *, anew: bool) -> None:
        """Build the guest if need be, boot it unless it runs, and put this clone's sources into it."""
        if anew or not (HOME / f"{self.suite}.img").exists():
            say(f"{self.suite}: build")
            subprocess.run([GUEST, "build", self.suite], check=True)  # noqa: S603
        if self.ssh("root", "true", 300).returncode:
            say(f"{self.suite}: boot")
            subprocess.run([GUEST, "boot", self.suite], check=True)  # noqa: S603
            subprocess.run([GUEST, "wait", self.suite], check=True)  # noqa: S603
        subprocess.run([GUEST, "renew", self.suite], check=True)  # noqa: S603
        shutil.copy(Path(__file__).with_name("rows.sh"), HOME / "share" / SCRIPT)
        self.machine.about = self.ssh("root", ABOUT).stdout.strip()

    def stop(self, *, keep: bool) -> None:
        (HOME / "share" / SCRIPT).unlink(missing_ok=True)
        if not keep:
            run(GUEST, "stop", self.suite)

    def ssh(self, user: str, command: str, timeout: float = ROW_SECONDS) -> "subprocess.CompletedProcess[str]":
        try:
            return run(GUEST, "ssh", self.suite, user, command, timeout=timeout)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess([], 124, "", f"no end within {timeout:.0f} s")

    def row(self, name: str, user: str, *, logout: bool) -> None:
        if logout:
            self.ssh("root", LOGOUT.format(user) if user != "root" else "sleep 15")
        began = time.monotonic()
        done = self.ssh(user, f"bash /share/{SCRIPT} {name}")
        cell = self._cell(done)
        self._keep(lambda machine: machine.cells.setdefault(name, {}), user, cell)
        say(f"{self.suite}: {name} as {user}, {time.monotonic() - began:.0f} s: {cell.seen}")

    def tests(self, paths: Sequence[str]) -> None:
        for path in paths:
            done = self.ssh("root", TESTS.format(path), 2 * ROW_SECONDS)
            cell = self._cell(done, whole=True)
            self._keep(lambda machine: machine.tests, path, cell)
            say(f"{self.suite}: {path}: {cell.seen}")

    def remedies(self, name: str = "") -> None:
        for situation, good, seen in remedies.tried(remedies.Machine([GUEST, "ssh", self.suite]), name):
            cell = Cell(good, seen, self._commit, self._date)
            self._keep(lambda machine: machine.remedies, situation, cell)
            say(f"{self.suite}: {situation}: {seen}")

    def _cell(self, done: "subprocess.CompletedProcess[str]", *, whole: bool = False) -> Cell:
        lines = [line for line in (done.stdout or done.stderr).splitlines() if line.strip()] or ["nothing"]
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))] if whole else []
        seen = "; ".join([*failed, re.sub(r" in [\d.]+s.*", "", lines[-1])])
        return Cell(done.returncode == 0, seen, self._commit, self._date)

    def _keep(self, part: Callable[[Machine], dict[str, Cell]], name: str, cell: Cell) -> None:
        """Keep it beside what another run has kept meanwhile."""
        about = self.machine.about
        if self._kept.exists():
            self.machine = machine_of(json.loads(self._kept.read_text()))
        self.machine.about = about
        part(self.machine)[name] = cell
        self._kept.write_text(json.dumps(self.machine.facts(), indent=1))


def commit() -> str:
    """Return the short commit of this clone, with `+` if the sources have changes."""
    git = ["git", "-C", str(PROJECT)]
    changed = run(*git, "status", "--porcelain", "--", "src", "tests", "tools/machines").stdout.strip()
    return run(*git, "rev-parse", "--short=8", "HEAD").stdout.strip() + ("+" if changed else "")


def write_page() -> None:
    """Write what is kept of all guests."""
    kept = [HOME / f"{suite}.json" for suite in SUITES]
    machines = [machine_of(json.loads(path.read_text())) for path in kept if path.exists()]
    PAGE.write_text(written_into(PAGE.read_text(), section(machines, [each.name for each in remedies.SITUATIONS])))


def try_all(guest: Guest, users: Sequence[str], only: Sequence[str]) -> None:
    for user in users:
        for row in ROWS:
            if not only or row.name in only:
                guest.row(row.name, user, logout=row.logout)
    if not only or "remedies" in only:
        guest.remedies()
    guest.tests([path for path in KERNEL_TESTS if not only or "tests" in only or path in only])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", default=SUITES)
    parser.add_argument("--user", action="append")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--page", action="store_true", help="only write the page from what is kept")
    asked = parser.parse_args(arguments)
    failed = 0
    for suite in () if asked.page else asked.suites:
        guest = Guest(suite)
        try:
            guest.start(anew=asked.build)
            try_all(guest, asked.user or ("root", "ada"), asked.only)
        finally:
            guest.stop(keep=asked.keep)
        failed += sum(not cell.good for cell in guest.machine.all_cells())
    write_page()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
