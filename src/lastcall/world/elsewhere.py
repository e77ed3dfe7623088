"""A machine without Linux: clients work there, the rest says how to get a Linux VM."""

_MACHINES = {
    "darwin": (
        "macOS",
        "a Linux VM by Lima: brew install lima; limactl start --name=debian template://debian; limactl shell debian",
    ),
    "win32": ("Windows", "a Linux VM by WSL 2: wsl --install -d Debian"),
    "cygwin": ("Windows", "a Linux VM by WSL 2: wsl --install -d Debian"),
}
_INSIDE = "sudo apt install python3-venv; python3 -m venv ~/lastcall; ~/lastcall/bin/pip install lastcall"


CLIENTS = ("lint", "controller-manager", "scheduler", "completion")
"""Commands that need files, an API server or nothing: they work on every platform that Python and its wheels know."""


def why_not(command: str, platform: str) -> str:
    """Return lines for the user: why `command` does not work on `platform` (`sys.platform`), the fix and what works."""
    name, machine = _MACHINES.get(platform, (platform, "a Linux VM"))
    return (
        f"lastcall {command} needs Linux 5.11 or newer: containers are processes of its kernel. This is {name}.\n"
        f"fix: {machine}\n"
        f"inside: {_INSIDE} (docs/machines.md; not tried by us)\n"
        f"here work: {', '.join(f'lastcall {each}' for each in CLIENTS)}"
    )
