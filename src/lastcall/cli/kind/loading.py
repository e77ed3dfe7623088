"""`lastcall load`: images from a container engine of this machine, or from an archive."""

import shutil
import subprocess
import tempfile

import click

from lastcall.cli.errors import WorldError
from lastcall.cli.image.command import import_archive

ENGINES = ("docker", "podman", "nerdctl")

_name_option = click.option(
    "--name", default="", hidden=True, help="As kind takes it: images are the same for all clusters here."
)


@click.command("docker-image")
@click.argument("images", metavar="IMAGE…", nargs=-1, required=True)
@_name_option
@click.pass_context
def docker_image(context: click.Context, images: tuple[str, ...], name: str) -> None:
    """Take images over from docker, podman or nerdctl (the first that is installed), for all clusters of this user."""
    engine = next(filter(None, map(shutil.which, ENGINES)), None)
    if engine is None:
        raise WorldError(
            f"none of {', '.join(ENGINES)} is installed here: `docker save IMAGE | lastcall image import -` takes an "
            "image from another machine"
        )
    with tempfile.NamedTemporaryFile(suffix=".tar", prefix="lastcall-") as archive:
        done = subprocess.run(  # noqa: S603 (no shell)
            [engine, "save", "--output", archive.name, *images], stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode != 0:
            raise WorldError(f"{engine} save: {done.stderr.strip() or f'it ended with {done.returncode}'}")
        context.invoke(import_archive, files=(archive.name,), name="", platform="")


@click.command("image-archive")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@_name_option
@click.pass_context
def image_archive(context: click.Context, files: tuple[str, ...], name: str) -> None:
    """Import `docker save` archives and OCI layouts: all clusters of this user have their images then."""
    context.invoke(import_archive, files=files, name="", platform="")
