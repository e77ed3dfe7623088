"""Keep mutants from harming the machine: a changed rule may kill, delete or mount something else.

The whole program runs in namespaces of its own. There it sees no other process, has only loopback, and every file
system is read-only but for an empty /tmp (or /dev/shm, if the project is in /tmp) and the folder of results.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

INSIDE = "MUTANTS_SANDBOX"

LEFT_ALONE = ("/proc", "/dev")


def enter(results: Path) -> None:
    """Run this program again inside the sandbox, unless it is there. Ends the program if there can be none."""
    if os.environ.get(INSIDE) == "no":
        return
    if os.environ.get(INSIDE) == "ready":
        _close(results)
        os.environ[INSIDE] = "closed"
        return
    results.mkdir(parents=True, exist_ok=True)
    command = [
        "unshare", *([] if os.getuid() == 0 else ["--map-root-user"]), "--mount", "--pid", "--fork", "--mount-proc",
        "--net", "--ipc", "--kill-child", sys.executable, "-m", "mutants", *sys.argv[1:],
    ]  # fmt: skip
    try:
        done = subprocess.run(command, env=os.environ | {INSIDE: "ready"}, check=False)
    except FileNotFoundError:
        sys.exit(
            f"`unshare` is not installed (util-linux). {INSIDE}=no runs without it; a mutant may then harm the machine."
        )
    sys.exit(done.returncode)


def _close(results: Path) -> None:
    """Bring loopback up and make every mount read-only but for those that tests write to."""
    _do("ip", "link", "set", "lo", "up")
    _do("mount", "--make-rprivate", "/")
    _do("mount", "--bind", results, results)
    place = temporary_folder(Path.cwd())
    _do("mount", "-t", "tmpfs", "-o", "size=2g,mode=1777", "mutants", place)
    os.environ["TMPDIR"] = place
    _do("mount", "--bind", "/proc/sys", "/proc/sys")
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in to_close(mounts, [place, str(results)]):
        done = subprocess.run(["mount", "-o", "remount,bind,ro", mount], capture_output=True, text=True, check=False)
        if done.returncode and mount in ("/", str(Path.cwd())):
            sys.exit(f"{mount} cannot be made read-only: {done.stderr.strip()}")


def temporary_folder(project: Path) -> str:
    """Return where the empty temporary folder is mounted."""
    return "/dev/shm" if project.as_posix().startswith("/tmp/") else "/tmp"


def to_close(mounts: Sequence[str], open_ones: Sequence[str]) -> list[str]:
    """Return the mount points that become read-only."""
    left = [each for each in dict.fromkeys(mounts) if each not in open_ones]
    return [each for each in left if each == "/proc/sys" or not each.startswith(LEFT_ALONE)]


def _do(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"The sandbox could not be made: {' '.join(map(str, command))}: {done.stderr.strip()}")
