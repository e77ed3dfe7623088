"""What each dependency costs: `python tools/dependency_costs.py`, in an environment where lastcall is installed.

Prints a Markdown table: milliseconds of processor time of its import (the least of 9 fresh interpreters, each of which
has imported asyncio and ssl before), its installed size, and the size of what only it brings along.
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

MODULES = {
    "pyjwt": "jwt",
    "pyyaml": "yaml",
    "google-re2": "re2",
    "dnspython": "dns.message",
    "cryptography": "cryptography.x509",
    "h2": "h2.connection",
    "rich": "rich.console",
    "backports-zstd": "backports.zstd",
}
"""What lastcall imports of it, where that is not named as the package."""

FIRST = "import asyncio, ssl, json, logging, typing, dataclasses, time; began = time.process_time(); "


def name_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def needs(name: str) -> set[str]:
    """Return the packages that an installed one needs here, itself included."""
    found = {name_of(name)}
    waiting = [name]
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            each = Requirement(text)
            if (each.marker is None or each.marker.evaluate({"extra": ""})) and name_of(each.name) not in found:
                found.add(name_of(each.name))
                waiting.append(each.name)
    return found


def installed_bytes(name: str) -> int:
    paths = [Path(str(file.locate())) for file in metadata.files(name) or ()]
    return sum(path.stat().st_size for path in paths if path.exists() and path.suffix != ".pyc")


def import_ms(module: str) -> float:
    code = f"{FIRST}import {module}; print(time.process_time() - began)"
    runs = [subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(9)]  # noqa: S603
    return min(map(float, runs)) * 1000


def main() -> None:
    mine = {Requirement(text).name for text in metadata.requires("lastcall") or ()}
    here = sorted((name for name in mine if _installed(name)), key=str.lower)
    closures = {name: needs(name) for name in here}
    sys.stdout.write(
        "| package | version | import, ms | installed, kB | what only it needs, kB |\n|---|---|---|---|---|\n"
    )
    for name in here:
        others = set().union(*(closures[other] for other in here if other != name))
        alone = closures[name] - others - {name_of(name)}
        more = ", ".join(f"{each} {installed_bytes(each) / 1000:.0f}" for each in sorted(alone)) or "-"
        module = MODULES.get(name_of(name), name)
        figures = f"{import_ms(module):.1f} | {installed_bytes(name) / 1000:.0f} | {more}"
        sys.stdout.write(f"| {name} | {metadata.version(name)} | {figures} |\n")
    everything = set().union(*closures.values())
    total = sum(map(installed_bytes, everything)) / 1e6
    own = installed_bytes("lastcall") / 1e6
    sys.stdout.write(f"\n{len(everything)} packages, {total:.1f} MB; lastcall itself {own:.1f} MB\n")


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
