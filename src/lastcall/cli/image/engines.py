"""`lastcall image load`: images out of docker, podman or nerdctl, by their own `save`."""

# check: reaches inside because images raise the errors of CRI

# check: starts processes because docker or podman save the images

import os
import shutil
import subprocess
import tempfile
from typing import IO

import click

from lastcall.cli.image.errors import BadInput, report_errors
from lastcall.cli.image.growth import growth
from lastcall.cli.image.pull import wanted_platform
from lastcall.cli.options import platform_option
from lastcall.cli.terminal import say
from lastcall.errors import WorldError
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.images import ImageStore, Platform, import_images, parse_reference

ENGINES = ("docker", "podman", "nerdctl")
_MOST_SAID = 5
"""Lines of an engine's error that are passed on."""


@click.command("load", short_help="Copy images from docker, podman or nerdctl.")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=None,
    help="Where to copy from.  [default: the first that has the image]",
)
@platform_option
def load(names: tuple[str, ...], engine: str | None, platform: str) -> None:
    """Copy images from docker, podman or nerdctl on this machine, under all their names there and as NAME.

    They are for all clusters of this user, like those of image import and image pull.
    """
    load_images(names, engine, wanted_platform(platform))


def load_images(names: tuple[str, ...], engine: str | None, platform: Platform | None) -> None:
    """Load each image, and say so. Raises WorldError, click.ClickException."""
    for name in names:
        if name.startswith("-"):
            raise BadInput(f"{name!r} is not the name of an image: write a name such as app:v1")
        with report_errors():
            parse_reference(name)
    paths = {each: path for each in ENGINES if engine in (None, each) and (path := shutil.which(each))}
    if not paths:
        wanted = f"{engine} is not" if engine else f"none of {', '.join(ENGINES)} is"
        raise WorldError(
            f"{wanted} installed here: `docker save IMAGE | lastcall image import -` imports an image from another "
            f"machine"
        )
    for name in names:
        _load(name, paths, platform)


def _load(name: str, engines: dict[str, str], platform: Platform | None) -> None:
    layout = ImageStore().layout
    refused = []
    for engine, path in engines.items():
        with tempfile.TemporaryDirectory(prefix="lastcall-") as directory:
            archive = os.path.join(directory, f"{engine}.tar")
            why = _save(engine, path, name, archive)
            if why:
                refused.append(f"{engine} save {name}: {why}")
                continue
            with report_errors():
                try:
                    found = import_images(layout, archive, platform=platform)
                except RuntimeServiceError as error:
                    if _is_id(name) and "has no name" in str(error):
                        raise BadInput(
                            f"{name} is an ID, and the image has no name; fix: {engine} tag {name} NAME:TAG"
                        ) from error
                    raise
                asked = str(parse_reference(name))
                # podman calls it localhost/NAME, which is another name in a manifest.
                if "@" not in asked and len({one.digest for one in found}) == 1 and not _is_id(name):
                    found += import_images(layout, archive, name=name, platform=platform)
            for one in dict.fromkeys(found):
                say(f"{one.name} {one.digest[7:19]} loaded from {engine}")
            return
    raise WorldError("\n".join(refused))


def _is_id(name: str) -> bool:
    """Whether a name is that of no image in a manifest, but an ID."""
    return 12 <= len(name) <= 64 and all(each in "0123456789abcdef" for each in name)


def _save(engine: str, path: str, name: str, archive: str) -> str:
    """Have the engine write an archive; why it did not, "" when it did. An unfinished one is none."""
    with open(archive, "wb") as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(  # noqa: S603 (no shell, and no name begins with -)
            [path, "save", name], stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        try:
            with growth(f"{engine} saves {name}") as show:
                while True:
                    try:
                        status = process.wait(0.2)
                        break
                    except subprocess.TimeoutExpired:
                        show(os.fstat(out.fileno()).st_size)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if status == 0:
            return ""
        return _said(err) or (f"it ended with exit status {status}" if status > 0 else f"signal {-status} ended it")


def _said(err: IO[bytes]) -> str:
    """The last lines that an engine said."""
    err.seek(0, os.SEEK_END)
    err.seek(max(0, err.tell() - 4096))
    lines = [line.strip() for line in err.read().decode(errors="replace").splitlines() if line.strip()]
    return "\n  ".join(lines[-_MOST_SAID:])
