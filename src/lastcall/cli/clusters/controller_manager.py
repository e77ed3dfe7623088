"""`lastcall controller-manager`: the controllers as a process of their own, against any API server."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from lastcall.cli.clusters.connecting import Connected
from lastcall.cli.clusters.leading import Component
from lastcall.cli.clusters.options import ContextOptions, context_options, leader_elect_option
from lastcall.cli.errors import UserError
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.client.api import Client

LEASE = "kube-controller-manager"
"""The name kube-controller-manager itself uses: beside a real one this process waits for its end."""


@click.command("controller-manager")
@context_options(namespace=False)
@leader_elect_option(LEASE)
@click.option(
    "--controllers",
    metavar="LIST",
    default="*",
    show_default=True,
    help="Names, separated by commas: * for all that are on by default, NAME to add one, -NAME to leave one out.",
)
def controller_manager(asked: ContextOptions, leader_elect: bool, controllers: str) -> None:
    """Run the controllers against an API server until Ctrl-C.

    They create the Pods of Deployments, StatefulSets, Jobs …, collect garbage and finalize namespaces. If the process
    is killed, the next one continues where it stopped. Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    raise SystemExit(run_controller_manager(asked, leader_elect, chosen_controllers(controllers)))


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
        raise UserError("--controllers: no controller is left to run: name one, or * for all")
    return chosen


def run_controller_manager(asked: ContextOptions, leader_elect: bool, names: Sequence[str]) -> int:
    """Run until a signal; the exit status. Raises CommandError."""

    async def lead(world: World, cluster: Connected, acting: "Client") -> None:
        # late: 375 ms of `controller-manager --help`
        from lastcall.client.discovery import discover, openapi_document
        from lastcall.controllers.manager import run_controllers
        from lastcall.timeline.memory import NoRecorder

        component.note(f"runs {', '.join(names)} against {cluster.chosen.server}")
        await run_controllers(
            world=world,
            client=acting,
            recorder_for=lambda name: NoRecorder(),
            root_ca_pem=cluster.chosen.config.ca_pem,
            names=names,
            discover=partial(discover, cluster.client.request),
            openapi=partial(openapi_document, cluster.client.request),
        )

    component = Component("controller-manager", LEASE, lead)
    return component.run(asked, leader_elect=leader_elect, ended="the controllers have ended")
