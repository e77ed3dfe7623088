"""Ask pip whether wheels exist: `python tools/try_wheels.py [PLATFORM…]`, for every dependency and Python 3.11 to 3.14.

Prints a Markdown table: `yes`, or the packages that have no wheel for it and would have to be built. Installs nothing.
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "manylinux_2_28_x86_64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "manylinux_2_28_aarch64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "musllinux_1_2_x86_64": ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"),
    "musllinux_1_2_aarch64": ("musllinux_1_2_aarch64", "musllinux_1_1_aarch64"),
    "macosx_15_0_arm64": tuple(f"macosx_{n}_0_{kind}" for n in range(15, 10, -1) for kind in ("arm64", "universal2")),
    "win_amd64": ("win_amd64",),
}
"""What a machine calls itself → the tags that pip takes there."""


def requirements(version: str, platform: str) -> list[str]:
    """Return pyproject's own requirements, without markers: pip would read those for the Python that asks."""
    system = "darwin" if platform.startswith("mac") else "win32" if platform.startswith("win") else "linux"
    there = {"python_version": version, "sys_platform": system}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(text) for text in project["dependencies"]]
    return [f"{each.name}{each.specifier}" for each in wanted if each.marker is None or each.marker.evaluate(there)]


def resolves(wanted: Sequence[str], version: str, platform: str) -> bool:
    """Return whether pip finds wheels for all of them and for what they need."""
    tags = [word for tag in PLATFORMS[platform] for word in ("--platform", tag)]
    with tempfile.TemporaryDirectory() as target:
        options = ["--dry-run", "--target", target, "--only-binary=:all:", "--python-version", version, *tags]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", *options, *wanted]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode and "No matching distribution" not in done.stderr:
        raise SystemExit(done.stderr)
    return done.returncode == 0


def outcome(version: str, platform: str) -> str:
    wanted = requirements(version, platform)
    if resolves(wanted, version, platform):
        return "yes"
    return "no: " + ", ".join(Requirement(each).name for each in wanted if not resolves([each], version, platform))


def main(platforms: Sequence[str]) -> None:
    sys.stdout.write(f"| platform | {' | '.join(VERSIONS)} |\n|---|{'---|' * len(VERSIONS)}\n")
    for platform in platforms:
        row = [outcome(version, platform) for version in VERSIONS]
        sys.stdout.write(f"| {platform} | {' | '.join(row)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(PLATFORMS))
