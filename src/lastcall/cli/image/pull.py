"""`lastcall image pull`: from a registry into the image store, with a bar for each layer or, piped, a line."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import click

from lastcall.cli.image.errors import BadInput, report_errors
from lastcall.cli.image.text import size_text
from lastcall.cli.options import platform_option
from lastcall.kube.cri.sandbox.images import (
    ImageStore,
    Platform,
    PlatformError,
    Reference,
    parse_platform,
    parse_reference,
)
from lastcall.world.clock import monotonic
from lastcall.world.world import World

if TYPE_CHECKING:
    from rich.console import Console

    from lastcall.kube.cri.sandbox.images import Progress

    Show = Callable[[Console, Reference], AbstractContextManager[Callable[[Progress], None]]]


@click.command("pull")
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@platform_option
@click.option("--quiet", "-q", is_flag=True, help="Print only the result.")
def pull(names: tuple[str, ...], platform: str, quiet: bool) -> None:
    """Pull images from their registries.

    Credentials come from your docker config (`docker login`), proxies from HTTPS_PROXY and NO_PROXY. An
    interrupted pull continues where it stopped.
    """
    # late: 37 ms of `image --help`
    from lastcall.cli.console import CommandConsole

    console = CommandConsole()
    wanted = wanted_platform(platform)
    with report_errors():
        references = [parse_reference(name) for name in names]
    for reference in references:
        show = _silent if quiet else _bars if console.is_terminal else _lines
        with report_errors(reference):
            asyncio.run(_pull(reference, wanted, console, show))


def pull_image(reference: Reference) -> None:
    """Pull one image, with bars on a terminal. Raises click.ClickException."""
    # late: as in `pull`
    from lastcall.cli.console import CommandConsole

    console = CommandConsole(stderr=True)
    with report_errors(reference):
        asyncio.run(_pull(reference, None, console, _bars if console.is_terminal else _lines))


async def _pull(reference: Reference, platform: Platform | None, console: "Console", show: "Show") -> None:
    # late: 242 ms of `image --help`
    from lastcall.kube.cluster import local_way_out
    from lastcall.kube.cri.sandbox.images import ImagePuller, Progress

    world = World()
    before = {entry.digest for entry in ImageStore().entries()}
    fetched: dict[str, int] = {}
    started = monotonic(world.clock)
    with show(console, reference) as on_progress, local_way_out() as way_out:

        def count(progress: Progress) -> None:
            if not progress.present:
                fetched[progress.digest] = progress.size
            on_progress(progress)

        puller = ImagePuller(world, ImageStore().layout, way_out)
        image = await puller.pull(reference, platform=platform, on_progress=count)
    seconds = monotonic(world.clock) - started
    if image.digest in before and not fetched:
        console.print(f"{reference} {image.digest} is up to date", soft_wrap=True)
    else:
        text = f"{reference} {image.digest} pulled, {size_text(sum(fetched.values()))} in {seconds:.1f} s"
        console.print(text, soft_wrap=True)


def wanted_platform(text: str) -> Platform | None:
    """Parse a platform, None for "". Raises BadInput."""
    try:
        return parse_platform(text) if text else None
    except PlatformError as error:
        raise BadInput(f"--platform: {error}") from error


@contextmanager
def _silent(console: "Console", reference: Reference) -> Iterator[Callable[["Progress"], None]]:
    yield lambda progress: None


@contextmanager
def _lines(console: "Console", reference: Reference) -> Iterator[Callable[["Progress"], None]]:
    """A line for each blob that is complete."""
    done: set[str] = set()
    console.print(f"{reference}: pulling", soft_wrap=True)

    def tell(progress: "Progress") -> None:
        if progress.done == progress.size and progress.digest not in done:
            done.add(progress.digest)
            what = "already here" if progress.present else size_text(progress.size)
            console.print(f"{progress.digest[7:19]}: {what}")

    yield tell


@contextmanager
def _bars(console: "Console", reference: Reference) -> Iterator[Callable[["Progress"], None]]:
    # late: 53 ms of `image --help`
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    bars: dict[str, TaskID] = {}
    with Bars(*columns, console=console, transient=True) as shown:

        def tell(progress: "Progress") -> None:
            if progress.digest not in bars:
                bars[progress.digest] = shown.add_task(progress.digest[7:19], total=progress.size)
            shown.update(bars[progress.digest], completed=progress.done)

        yield tell
