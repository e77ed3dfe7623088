"""`lastcall node network`: the Pod network of a machine whose kubelet is not lastcall's."""

import os
import socket
from contextlib import suppress

import click

from lastcall.cli.clusters.options import ContextOptions, context_options
from lastcall.cli.errors import Interrupted, UserError, WorldError
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.options import cni_conf_dir_option


@click.command()
@context_options(namespace=False)
@click.option("--node-name", metavar="NAME", default="", help="The Node of this machine.  [default: its host name]")
@cni_conf_dir_option(
    "Write the CNI configuration of the node's Pods (plugins ptp and host-local) to DIR: /etc/cni/net.d."
)
def network(asked: ContextOptions, node_name: str, cni_conf_dir: str) -> None:
    """Route Pods of this machine to those of all others, until Ctrl-C. Root only.

    For machines with a kubelet that is not lastcall's, in a cluster of lastcall up --pod-network. The kubelet's own
    kubeconfig has the rights. All that was made on the machine is removed at the end, also when this process is killed.
    Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    if cni_conf_dir and not os.path.isdir(cni_conf_dir):
        raise UserError(f"--cni-conf-dir {cni_conf_dir}: no such directory; fix: make it, or name another")
    if os.getuid() != 0:
        raise WorldError("lastcall node network: it needs root for routes on this machine; fix: sudo")
    # late: 375 ms of `node --help`
    from lastcall.cluster.machines.hold import TAKEN, Hold
    from lastcall.cluster.machines.kernel import why_not_forwarding

    if why := why_not_forwarding():
        raise WorldError(f"lastcall node network: {why}")
    try:
        hold = Hold.take()
    except OSError as error:
        raise WorldError(f"lastcall node network: {error.strerror or error}") from None
    if hold is None:
        raise WorldError(f"lastcall node network: {TAKEN}")
    try:
        _run(asked, node_name or socket.gethostname(), cni_conf_dir)
    finally:
        hold.end()


def _run(asked: ContextOptions, name: str, cni_conf_dir: str) -> None:
    # late: 375 ms of `node --help`
    from lastcall.cli.clusters.connecting import choose, connected
    from lastcall.cluster.machines.elsewhere import NoPodNetwork, follow
    from lastcall.cluster.machines.settings import SettingsError
    from lastcall.world import walls
    from lastcall.world.world import World

    chosen = choose(asked)

    async def run() -> None:
        walls.stand(walls.Faults(say=_note))
        async with connected(chosen, agent="lastcall-node-network") as cluster:
            await follow(World(), cluster.client, name, cni_conf_dir, _note)

    try:
        with Interrupts() as interrupts, suppress(Interrupted):
            interrupts.run(run())
    except (NoPodNetwork, SettingsError) as error:
        raise WorldError(str(error)) from None
    except OSError as error:
        raise WorldError(f"{error.filename or 'Pod network'}: {error.strerror or error}") from None


def _note(text: object) -> None:
    click.echo(f"node network: {text}", err=True)
