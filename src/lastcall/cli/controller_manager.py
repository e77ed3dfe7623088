"""`lastcall controller-manager`: the controllers as a process of their own, against any API server."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from lastcall._version import __version__
from lastcall.cli.context_options import context_options, leader_elect_option
from lastcall.cli.leader_election import Component, Fence
from lastcall.contexts import Connected, ContextOptions
from lastcall.errors import UserError
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.client import Client, HTTPClient

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
@click.option(
    "--use-service-account-credentials",
    "accounts",
    is_flag=True,
    help="Run each controller as its own ServiceAccount in kube-system, with the permissions that it has in "
    "Kubernetes.",
)
def controller_manager(asked: ContextOptions, leader_elect: bool, controllers: str, accounts: bool) -> None:
    """Run the controllers against an API server until Ctrl-C.

    They create the Pods of Deployments, StatefulSets, Jobs …, collect garbage and finalize namespaces. If the process
    is killed, the next one continues where it stopped. Exit status: 0 ended as asked, 2 bad input, 1 anything else.
    """
    raise SystemExit(run_controller_manager(asked, leader_elect, chosen_controllers(controllers), accounts))


def chosen_controllers(text: str) -> list[str]:
    """Return the controllers that a `--controllers` list means, as kube-controller-manager reads it.

    A name alone enables, with `-` before it disables; all others are as `*` says. Raises UserError.
    (`app.IsControllerEnabled`)
    """
    # late: 125 ms of `controller-manager --help`
    from lastcall.kube.controllers import DISABLED_BY_DEFAULT
    from lastcall.kube.controllers import NAMES as names

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


def run_controller_manager(
    asked: ContextOptions, leader_elect: bool, names: Sequence[str], accounts: bool = False
) -> int:
    """Run until a signal, and return the exit status. Raise LastcallError if the server refuses it.

    With `accounts` each controller is a ServiceAccount of its own; caches and the lease stay the kubeconfig's user's.
    """

    async def lead(world: World, cluster: Connected, fence: Fence) -> None:
        # late: 375 ms of `controller-manager --help`
        from lastcall.kube.api import gates_of_server
        from lastcall.kube.client import discover, fetch, openapi_document
        from lastcall.kube.controllers import run_controllers
        from lastcall.records.memory import NoRecorder

        component.note(f"runs {', '.join(names)} against {cluster.chosen.server}")
        own = OwnClients(cluster, component, fence) if accounts else None
        try:
            await run_controllers(
                world=world,
                client=fence(cluster.client),
                recorder_for=lambda name: NoRecorder(),
                root_ca_pem=cluster.chosen.config.ca_pem,
                gates=gates_of_server(cluster.version),
                names=names,
                discover=partial(discover, cluster.client.request),
                openapi=partial(openapi_document, cluster.client.request),
                fetch=partial(fetch, cluster.client.request),
                client_of=None if own is None else own.of,
            )
        finally:
            if own is not None:
                await own.close()

    component = Component("controller-manager", LEASE, lead)
    return component.run(asked, leader_elect=leader_elect, ended="the controllers have ended")


class OwnClients:
    """A client for each ServiceAccount that acts, made when it is first asked for."""

    def __init__(self, cluster: Connected, component: Component, fence: Fence) -> None:
        self._cluster, self._component, self._fence = cluster, component, fence
        self._clients: dict[str, HTTPClient] = {}

    def of(self, account: str) -> "Client":
        """Return the client of kube-system/`account`. The user of the kubeconfig makes the account and its tokens."""
        # late: 375 ms of `controller-manager --help`
        from lastcall.kube.client import AccountCredentials, client_for

        client = self._clients.get(account)
        if client is None:
            config = self._cluster.chosen.config
            client = self._clients[account] = client_for(
                config,
                credentials=AccountCredentials(self._fence(self._cluster.client), config, account),
                user_agent=f"lastcall-controller-manager/{__version__} {account}",
                request_timeout=self._cluster.chosen.asked.request_timeout,
                on_refused=self._component.refused,
            )
        return self._fence(client)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
