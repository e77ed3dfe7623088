"""`lastcall image`: the images that clusters on this machine start containers from."""

import sys

import click

from lastcall.cli.image.build_agent import build_agent
from lastcall.cli.image.engines import load
from lastcall.cli.image.errors import BadInput, report_errors
from lastcall.cli.image.growth import growth
from lastcall.cli.image.pull import pull, wanted_platform
from lastcall.cli.image.text import age_seconds, size_text
from lastcall.cli.options import json_text, platform_option, text_or_json_option
from lastcall.cli.terminal import say, show
from lastcall.kube.cri.sandbox.images import (
    MADE_FROM,
    ImageEntry,
    ImageStore,
    host_directories,
    host_image,
    import_images,
    parse_reference,
)
from lastcall.world.clock import RealClock


@click.group()
def image() -> None:
    """Pull, load, import, show, make and remove images (kept in $XDG_DATA_HOME/lastcall/images as an OCI layout)."""


image.add_command(pull)
image.add_command(load)
image.add_command(build_agent)


@image.command("ls")
@text_or_json_option
def list_images(output: str) -> None:
    """Show all images."""
    with report_errors():
        found = ImageStore().entries()
    if output == "json":
        entries = [
            {
                "id": one.image.id,
                "digest": one.digest,
                "repoTags": list(one.image.repo_tags),
                "repoDigests": list(one.image.repo_digests),
                "size": one.image.size,
                "created": one.created,
                "pulled": one.pulled,
                "annotations": one.image.annotations,
            }
            for one in found
        ]
        # late: only with --output json
        from lastcall.endings.render import envelope

        show(json_text({**envelope("lastcall/images/v1"), "images": entries}))
        return
    rows = [("IMAGE", "DIGEST", "SIZE", "CREATED", "FROM"), *(row for one in found for row in _rows(one))]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        say("  ".join([*(row[i].ljust(widths[i]) for i in range(4)), row[4]]).rstrip())


def _rows(one: ImageEntry) -> list[tuple[str, str, str, str, str]]:
    source = one.image.annotations.get(MADE_FROM, "") or ("its registry" if one.pulled else "")
    # An image that was pulled by digest has no tag.
    names = one.image.repo_tags or one.image.repo_digests or ("<none>",)
    return [
        (name, one.digest[7:19], size_text(one.image.size), one.created[:10] or "unknown", source) for name in names
    ]


@image.command("rm")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
def remove(names: tuple[str, ...]) -> None:
    """Remove images by name or by digest (12 digits are enough). Layers that other images use stay."""
    store = ImageStore()
    missing = []
    with report_errors():
        for name in names:
            if store.remove(name):
                say(f"removed {name}")
            else:
                missing.append(name)
    if missing:
        raise click.UsageError(f"no such image: {', '.join(missing)}. lastcall image ls lists the images")


@image.command("prune", short_help="Remove what is not needed.")
@click.option(
    "--older-than",
    default="",
    metavar="AGE",
    help="Also remove pulled images that were not used for this long: 12h, 30d, 4w.",
)
@click.option("--all", "everything", is_flag=True, help="Also remove all other pulled images.")
def prune(older_than: str, everything: bool) -> None:
    """Remove blobs without an image and interrupted downloads, and on request old images.

    Images that were made or imported here are never removed, because no registry has them.
    """
    try:
        age = age_seconds(older_than) if older_than else 0
    except ValueError as error:
        raise BadInput(f"--older-than: {error}") from error
    store = ImageStore()
    limit = RealClock().wall_ns() / 1e9 - age
    with report_errors():
        if not store.layout.root.is_dir():
            say("freed nothing: there are no images yet")
            return
        before = store.layout.occupied()
        for one in store.entries():
            if one.pulled and (everything or (older_than and one.last_used <= limit)):
                store.remove(one.image.id)
                for name in one.image.repo_tags or one.image.repo_digests:
                    say(f"removed {name}")
        collected = store.layout.collect()
        freed = before - store.layout.occupied()
    say(f"freed {size_text(max(freed, 0))}" if freed > 0 else "freed nothing")
    if collected.busy:
        say("images are being pulled, so their blobs were kept; try again when that is done", err=True)


@image.command("import", short_help="Import `docker save` archives and OCI layouts.")
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option("--name", default="", metavar="NAME", help="Name for the image (only for one FILE with one image).")
@platform_option
def import_archive(files: tuple[str, ...], name: str, platform: str) -> None:
    """Import images from `docker save` archives and OCI layouts (directory or tar; gzip is fine; - is stdin)."""
    if name and len(files) > 1:
        raise BadInput("--name works with a single FILE only")
    wanted = wanted_platform(platform)
    for file in files:
        stdin = sys.stdin.buffer if file == "-" else None
        with report_errors(), growth(f"importing {file}") as show:
            found = import_images(ImageStore().layout, file, name=name, platform=wanted, stdin=stdin, on_bytes=show)
        for one in found:
            say(f"{one.name} {one.digest[7:19]} imported from {'stdin' if file == '-' else file}")


@image.command("from-host")
@click.argument("name", metavar="NAME")
@click.option(
    "--directories", is_flag=True, help="Bind the host's /bin, /usr and /lib, even if it has a static busybox."
)
def from_host(name: str, directories: bool) -> None:
    """Make an image NAME from this machine's own programs.

    It has the host's static busybox or, if there is none, the host's /bin, /usr and /lib, bound read-only.

    The busybox of Debian 12 (1.35.0, static) crashes with SIGSEGV (exit code 139) on `wget -T`. Use `timeout 5 wget …`
    instead.
    """
    with report_errors():
        reference = parse_reference(name)
        content = host_directories() if directories else host_image()
        made = ImageStore().add(name, content)
    say(f"{reference} {made.id[7:19]} made from {made.annotations[MADE_FROM]}")
    say(f"It stands in for {reference}: it does not contain what the image of that name contains.", err=True)
