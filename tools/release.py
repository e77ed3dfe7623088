"""Build what is published, twice, and compare: `python tools/release.py [DIRECTORY]` (dist/ without).

The first wheel and sdist are built from the work tree, the second ones from the first sdist, unpacked elsewhere. They
must be equal byte by byte: then the sdist builds, and everybody with the sources can check a published file. Needs
hatchling, hatch-fancy-pypi-readme and deflate (the `dev` group), and no network.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from repack import repack

ROOT = Path(__file__).resolve().parents[1]

EPOCH = 1_577_836_800
"""2020-01-01: the time of every file in wheel and sdist, where SOURCE_DATE_EPOCH names no other (seconds)."""

MOST_WHEEL_BYTES = 3_000_000


class NotReproducible(Exception):
    """Two builds of the same sources differ."""


def build(source: Path, target: Path) -> list[Path]:
    """Build sdist and wheel of `source`, in this order. Raises CalledProcessError with what the builder said."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", str(EPOCH))}
    for kind in ("sdist", "wheel"):
        subprocess.run(  # noqa: S603 # our own interpreter
            [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)],
            cwd=source,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
    (sdist,) = target.glob("*.tar.gz")
    (wheel,) = target.glob("*.whl")
    repack(wheel)
    return [sdist, wheel]


def unpack(archive: tarfile.TarFile, target: Path) -> None:
    """Unpack an archive of our own. Python before 3.11.4 (Debian 12's) has no filters."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(target, filter="data")
    else:
        archive.extractall(target)  # noqa: S202 (made here, from this project)


def build_twice(target: Path) -> list[Path]:
    """Build sdist and wheel in `target`, proved to be reproducible. Raises NotReproducible."""
    with tempfile.TemporaryDirectory(prefix="lastcall-release-") as name:
        work = Path(name)
        first = build(ROOT, work / "first")
        with tarfile.open(first[0]) as archive:
            unpack(archive, work / "unpacked")
        (unpacked,) = (work / "unpacked").iterdir()
        for path in unpacked.rglob("*"):
            os.utime(path, (0, 0))
            path.chmod(0o700 if path.is_dir() else 0o600 | path.stat().st_mode & 0o100)
        for one, other in zip(first, build(unpacked, work / "second"), strict=True):
            if one.read_bytes() != other.read_bytes():
                raise NotReproducible(f"{one.name} differs when it is built from the unpacked sdist")
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, target / path.name)) for path in first]


def main(target: Path) -> None:
    for path in build_twice(target):
        content = path.read_bytes()
        sys.stdout.write(f"{hashlib.sha256(content).hexdigest()}  {path}  {len(content):,} bytes\n")
        if path.suffix == ".whl" and len(content) >= MOST_WHEEL_BYTES:
            raise SystemExit(f"{path.name} has {MOST_WHEEL_BYTES:,} bytes or more")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
