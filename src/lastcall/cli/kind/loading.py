"""`lastcall load`: images from a container engine of this machine, or from an archive."""

import click

from lastcall.cli.image.command import import_archive
from lastcall.cli.image.engines import load_images

_name_option = click.option(
    "--name", default="", hidden=True, help="Accepted because kind has it: all clusters here share their images."
)


@click.command("docker-image")
@click.argument("images", metavar="IMAGE…", nargs=-1, required=True)
@_name_option
def docker_image(images: tuple[str, ...], name: str) -> None:
    """Take images over from docker, podman or nerdctl (the first that has them), for all clusters of this user."""
    load_images(images, None, None)


@click.command("image-archive")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@_name_option
@click.pass_context
def image_archive(context: click.Context, files: tuple[str, ...], name: str) -> None:
    """Import `docker save` archives and OCI layouts: all clusters of this user have their images then."""
    context.invoke(import_archive, files=files, name="", platform="")
