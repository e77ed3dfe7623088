"""`lastcall controller-manager`: the controllers as a process of their own, against any API server."""

import asyncio
import os
import socket
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lastcall import __version__
from lastcall.api.resources import NAMESPACES
from lastcall.cli.errors import UserError, WorldError
from lastcall.cli.interrupts import Interrupts
from lastcall.world import walls
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.client.api import Client
    from lastcall.client.kubeconfig import ClientConfig

LEASE = "kube-controller-manager"
"""The name kube-controller-manager itself uses: beside a real one this process waits for its end."""


@click.command("controller-manager")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default="",
    help="Kubeconfig of the API server.  [default: $KUBECONFIG, or ~/.kube/config]",
)
@click.option("--context", metavar="NAME", default="", help="Context to use.  [default: the current one]")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help=f"Of several processes, only the holder of the Lease kube-system/{LEASE} acts.",
)
@click.option(
    "--controllers",
    metavar="LIST",
    default="*",
    show_default=True,
    help="Names, separated by commas: * for all that are on by default, NAME to add one, -NAME to leave one out.",
)
def controller_manager(kubeconfig: str, context: str, leader_elect: bool, controllers: str) -> None:
    """Run the controllers against an API server until Ctrl-C.

    They create the Pods of Deployments, StatefulSets, Jobs …, collect garbage and finalize namespaces. If the process
    is killed, the next one continues where it stopped. Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    raise SystemExit(run_controller_manager(kubeconfig, context, leader_elect, chosen_controllers(controllers)))


def chosen_controllers(text: str) -> list[str]:
    """The controllers that a `--controllers` list means, as kube-controller-manager reads it.

    A name alone enables, with `-` before it disables; all others are as `*` says. Raises UserError.
    (`app.IsControllerEnabled`)
    """
    # late: 125 ms of `controller-manager --help`
    from lastcall.controllers.manager import DISABLED_BY_DEFAULT
    from lastcall.controllers.manager import NAMES as names

    words = [word for word in (part.strip() for part in text.split(",")) if word]
    unknown = [word for word in words if word != "*" and word.removeprefix("-") not in names]
    if unknown:
        raise UserError(f"--controllers: no controller {unknown[0].removeprefix('-')!r}; there are {', '.join(names)}")
    by_default = [
        name for name in names if "*" in words and name not in DISABLED_BY_DEFAULT and f"-{name}" not in words
    ]
    chosen = [name for name in names if name in words or name in by_default]
    if not chosen:
        raise UserError("--controllers: there are none left to run: name one, or * for all")
    return chosen


def run_controller_manager(kubeconfig: str, context: str, leader_elect: bool, names: Sequence[str]) -> int:
    """Run until a signal; the exit status. Raises CommandError."""
    # late: 267 ms of `controller-manager --help`
    from lastcall.client.kubeconfig import KubeconfigError, load_kubeconfig

    try:
        config = load_kubeconfig(kubeconfig, context)
    except KubeconfigError as error:
        raise UserError(str(error)) from error
    with Interrupts(message="the controllers have ended") as interrupts:
        try:
            asyncio.run(_run(config, leader_elect, names, interrupts))
        except asyncio.CancelledError:
            if not interrupts.number:
                raise
        except KubeconfigError as error:
            raise UserError(str(error)) from error
    return 0


async def _run(config: "ClientConfig", leader_elect: bool, names: Sequence[str], interrupts: Interrupts) -> None:
    # late: 375 ms of `controller-manager --help`
    from lastcall.client.discovery import discover
    from lastcall.client.kubeconfig import client_for
    from lastcall.client.leaderelection import FencedClient, LeaderElector, LeadershipLost
    from lastcall.controllers.manager import run_controllers
    from lastcall.timeline.memory import NoRecorder

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    interrupts.on_first = cancel
    interrupts.check()
    walls.stand(walls.Faults(say=_note))
    world = World()
    client = client_for(config, user_agent=_user_agent())
    try:
        await _probe(client, config)

        async def lead(acting: "Client") -> None:
            _note(f"runs {', '.join(names)} against {config.server}")
            await run_controllers(
                world=world,
                client=acting,
                recorder_for=lambda name: NoRecorder(),
                root_ca_pem=config.ca_pem,
                names=names,
                discover=partial(discover, client.request),
            )

        if not leader_elect:
            await lead(client)
            return
        identity = f"{socket.gethostname()}_{world.new_uid()}"
        while True:
            elector = LeaderElector(world, client, name=LEASE, identity=identity, on_leader=_tell(identity))
            fenced = FencedClient(client, lambda elector=elector: elector.is_leader)  # type: ignore[misc]
            try:
                await elector.run(lambda fenced=fenced: lead(fenced))  # type: ignore[misc]
            except LeadershipLost as error:
                _note(f"{error}: waits for it again")
    finally:
        interrupts.on_first = None
        await client.close()


async def _probe(client: Any, config: "ClientConfig") -> None:
    """What is wrong from the start is said, and not tried forever."""
    # late: 8 ms of `controller-manager --help`
    from lastcall.api.errors import StatusError
    from lastcall.client.api import ConnectionLost

    try:
        await client.list(NAMESPACES)
    except ConnectionLost as error:
        raise WorldError(f"the API server at {config.server} cannot be reached: {error}") from error
    except StatusError as error:
        if error.code in (401, 403):
            raise UserError(f"the kubeconfig's user may not do this at {config.server}: {error.message}") from error
        raise WorldError(f"the API server at {config.server} answers: {error.message}") from error


def _tell(identity: str) -> Any:
    def tell(holder: str) -> None:
        _note("is the leader" if holder == identity else f"{holder} is the leader: waits for its end")

    return tell


def _user_agent() -> str:
    return f"lastcall-controller-manager/{__version__}"


def _note(text: str) -> None:
    click.echo(f"controller-manager[{os.getpid()}]: {text}", err=True)
