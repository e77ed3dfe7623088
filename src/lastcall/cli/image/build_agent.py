"""Run `lastcall image build-agent`: build the image of what lastcall starts on an existing cluster.

It has Python, lastcall and what that needs, below /opt/lastcall. Every program of lastcall runs in it:

- `command: ["python3", "-m", "lastcall.trace.agent", …]`: the node agent of `lastcall trace --node-agent`;
- `command: ["python3", "-m", "lastcall.MODULE", …]`: any other module with a main;
- `args: ["COMMAND", …]`: a command, as typed behind `lastcall`: the image's entrypoint is the command line.

No file is written at run time (PYTHONDONTWRITEBYTECODE), so `readOnlyRootFilesystem: true` and any user id are fine.
The default name is below `localhost/`: no registry has it, so nobody else's image comes by this name.
"""

# check: reaches inside because an image has the configuration of a container

from pathlib import Path

import click

from lastcall.cli.image.errors import BadInput, report_errors
from lastcall.cli.image.pull import pull_image
from lastcall.cli.image.text import size_text
from lastcall.cli.terminal import say
from lastcall.kube.cri.sandbox.images import (
    HOME,
    IMAGE_NAME,
    MADE_FROM,
    Base,
    ImageContent,
    ImageStore,
    add_layer,
    check_python,
    package_files,
    parse_reference,
    python_here,
)
from lastcall.kube.cri.sandbox.spec import ImageConfig
from lastcall.trace.node_agent import DEFAULT_IMAGE

AGENT_IMAGE = DEFAULT_IMAGE

_CONFIG = ImageConfig(
    entrypoint=("python3", "-m", "lastcall.cli.main"),
    env=(f"PYTHONPATH=/{HOME}", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"),
    working_dir="/",
    user="65534:65534",
)


@click.command("build-agent", short_help="Make the image for what lastcall starts on existing clusters.")
@click.option(
    "--base",
    default="",
    metavar="IMAGE",
    help="Image with Python to build on.  [default: python:3.X-slim, of the Python that runs lastcall]",
)
@click.option(
    "--wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="Wheel of lastcall.  [default: lastcall as it is installed here]",
)
@click.option("--name", default=AGENT_IMAGE, show_default=True, metavar="NAME", help="Name of the image.")
@click.option(
    "--output-file",
    "-o",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the image to an archive.",
)
def build_agent(base: str, wheel: Path | None, name: str, output: Path | None) -> None:
    """Make the image for what lastcall starts on existing clusters: load generators and node agents.

    lastcall's own clusters find the image here. For other clusters write an archive with -o: `kind load image-archive`,
    `ctr -n k8s.io images import`, `docker load`. It contains lastcall as installed here, so the base image needs the
    same minor version of Python. lastcall pulls the base if this machine does not have it.
    """
    with report_errors():
        reference, below = parse_reference(name), parse_reference(base or f"python:{python_here()}-slim")
        if reference.digest:
            raise BadInput(f"--name {name}: a new image has no digest yet; use NAME:TAG")
        store = ImageStore()
        known = {each.annotations.get(IMAGE_NAME) for each in store.layout.index()}
    if str(below) not in known:
        pull_image(below)
    with report_errors():
        found = Base(store.layout, str(below))
        check_python(str(below), found.env, found.names())
        source = "lastcall's wheel" if wheel is not None else "lastcall as installed"
        content = ImageContent(
            package_files(wheel), _CONFIG, {MADE_FROM: f"{below.familiar}:{below.tag or 'digest'} and {source}"}
        )
        made = add_layer(found, str(reference), content, "lastcall image build-agent")
        say(f"{reference} {made.digest[7:19]} made of {below} and {wheel or 'lastcall as it is installed here'}")
        if output is not None:
            # late: only with --output-file
            from lastcall.kube.cri.sandbox.images import write_archive

            size = write_archive(store.layout, str(reference), made, output)
            say(f"{output}: {size_text(size)}; kind load image-archive or ctr -n k8s.io images import takes it")
