"""`lastcall runtime`: the container runtime as a process of its own, served as CRI."""

import os
from contextlib import suppress

import click

from lastcall.cli.errors import Interrupted, UserError, WorldError
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.options import cni_conf_dir_option
from lastcall.world import walls

DEFAULT_SOCKET = "unix:///run/lastcall.sock"
DEFAULT_ROOT = "/var/lib/lastcall/runtime"
_LONGEST_SOCKET = 100
"""Bytes: a Unix socket's address has 108."""


@click.command("runtime")
@click.option(
    "--listen", metavar="URL", default=DEFAULT_SOCKET, show_default=True, help="Unix socket on which to serve."
)
@click.option(
    "--root", metavar="DIR", default=DEFAULT_ROOT, show_default=True, help="State: sandboxes, containers, images."
)
@cni_conf_dir_option("CNI configuration of Pods.  [default: a bridge of its own]")
@click.option("--cni-bin-dir", metavar="DIR", default="", help="CNI plugins.  [default: /opt/cni/bin and /usr/lib/cni]")
@click.option("--image-store", metavar="DIR", default="", help="Images.  [default: those of lastcall image]")
def runtime(listen: str, root: str, cni_conf_dir: str, cni_bin_dir: str, image_store: str) -> None:
    """Serve CRI v1 to a kubelet or crictl until Ctrl-C. Root only.

    Containers outlive this process, also when it is killed: the next one on the same --root continues with them. When
    no sandbox is left at its end, nothing is. Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    # late: only to look whether it is there
    from importlib.util import find_spec

    socket = socket_of(listen)
    directories = {"--cni-conf-dir": cni_conf_dir, "--cni-bin-dir": cni_bin_dir}
    for flag, directory in directories.items():
        if directory and not os.path.isdir(directory):
            raise UserError(f"{flag} {directory}: no such directory; fix: name one that exists")
    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        raise UserError("lastcall runtime: grpcio is not installed; fix: pip install 'lastcall[cri]'")
    if os.getuid() != 0:
        raise WorldError("lastcall runtime: it needs root for the network of Pods on this machine; fix: sudo")
    # late: only where it runs
    from lastcall.cluster.runtime.process import Settings
    from lastcall.cri.api import RuntimeServiceError

    found = [os.path.abspath(path) if path else "" for path in (root, cni_conf_dir, cni_bin_dir, image_store)]
    try:
        _run(Settings(socket, *found))
    except OSError as error:
        raise WorldError(f"{error.filename or socket}: {error.strerror or error}") from None
    except RuntimeServiceError as error:
        raise WorldError(f"{error}; fix: look at {found[0]}/keeper.log") from None


def socket_of(listen: str) -> str:
    """The path of a Unix socket's URL. Raises UserError."""
    path = listen.removeprefix("unix://")
    if not listen.startswith("unix:///") or not os.path.basename(path) or "\0" in path:
        raise UserError(f"--listen {listen!r}: is not a Unix socket; fix: write {DEFAULT_SOCKET}")
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        raise UserError(f"--listen: the path has more than {_LONGEST_SOCKET} bytes; fix: a shorter one")
    if not os.path.isdir(os.path.dirname(path)):
        raise UserError(f"--listen: {os.path.dirname(path)} does not exist; fix: make it, or name another")
    return path


def _run(settings: object) -> None:
    # late: only where it runs
    from lastcall.cluster.runtime.process import serve

    async def run() -> None:
        walls.stand(walls.Faults(say=_note))
        await serve(settings, _note)  # type: ignore[arg-type]  # imported late

    with Interrupts() as interrupts, suppress(Interrupted):
        interrupts.run(run())


def _note(text: object) -> None:
    click.echo(f"lastcall runtime: {text}", err=True)
