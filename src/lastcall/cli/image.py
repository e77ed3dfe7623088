"""`lastcall image`: the images that clusters on this machine start containers from."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from lastcall.cri.api import Image, RuntimeServiceError
from lastcall.cri.sandbox.from_host import host_directories, host_image
from lastcall.cri.sandbox.images import MADE_FROM, ImageStore, parse_reference


class _BadInput(click.ClickException):
    exit_code = 2


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except RuntimeServiceError as error:
        kind = _BadInput if error.reason == "InvalidImageName" else click.ClickException  # exit status 2, 1
        raise kind(str(error)) from error


@click.group()
def image() -> None:
    """Show, make and remove images (kept in $XDG_DATA_HOME/lastcall/images as an OCI layout)."""


@image.command("ls")
@click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to show them."
)
def list_images(output: str) -> None:
    """Show all images."""
    with _errors():
        found = ImageStore().images()
    if output == "json":
        entries = [
            {
                "id": one.id,
                "repoTags": list(one.repo_tags),
                "repoDigests": list(one.repo_digests),
                "size": one.size,
                "annotations": one.annotations,
            }
            for one in found
        ]
        click.echo(json.dumps({"schema": "lastcall/images/v1", "images": entries}, indent=2))
        return
    rows = [("IMAGE", "ID", "SIZE", "MADE FROM"), *(row for one in found for row in _rows(one))]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        click.echo("  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip())


def _rows(one: Image) -> list[tuple[str, str, str, str]]:
    made_from = one.annotations.get(MADE_FROM, "")
    return [(name, one.id[7:19], _size(one.size), made_from) for name in one.repo_tags or ("<none>",)]


def _size(size: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size = size / 1024  # type: ignore[assignment]
    return f"{size:.1f} GiB"


@image.command("rm")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def remove(names: tuple[str, ...]) -> None:
    """Remove images by name or id."""
    store = ImageStore()
    missing = []
    with _errors():
        for name in names:
            if store.remove(name):
                click.echo(f"removed {name}")
            else:
                missing.append(name)
    if missing:
        raise click.UsageError(f"no such image: {', '.join(missing)} (lastcall image ls shows all)")


@image.command("from-host")
@click.argument("name", metavar="NAME")
@click.option(
    "--directories", is_flag=True, help="Bind the host's /bin, /usr and /lib, even where it has a static busybox."
)
def from_host(name: str, directories: bool) -> None:
    """Make an image NAME of this machine's own programs.

    It has the host's static busybox, or, where there is none, the host's /bin, /usr and /lib bound read-only.
    """
    with _errors():
        reference = parse_reference(name)
        content = host_directories() if directories else host_image()
        made = ImageStore().add(name, content)
    click.echo(f"{reference} {made.id[7:19]} made from {made.annotations[MADE_FROM]}")
