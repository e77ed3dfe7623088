"""The program of `escape.c` in a container of `shim_world`, and what it said."""

import subprocess
from pathlib import Path

from shim_world import ShimWorld


def build(world: ShimWorld) -> None:
    """Put it into the image, as /bin/escape: static, because the image has no libraries."""
    source, program = Path(__file__).with_name("escape.c"), world.images.layer / "bin/escape"
    subprocess.run(["gcc", "-O1", "-static", "-o", str(program), str(source)], check=True)


async def attempts(world: ShimWorld, *words: str, **more: object) -> dict[str, str]:
    """Run it in a container of its own; attempt → "OK" or the name of the errno."""
    if not (world.images.layer / "bin/escape").exists():
        build(world)
    status, output = await world.run("escape", *words, **more)
    assert status.exit_code == 0, f"{status} {output}"
    return dict(line.split(": ", 1) for line in output.splitlines())
