"""Approves what the node asks for, with the rights of the administrator who started it, and nothing else."""

from collections.abc import Callable

from lastcall.api.errors import StatusError
from lastcall.api.meta import Object, name_of
from lastcall.api.resources import CERTIFICATESIGNINGREQUESTS
from lastcall.client.access.config import ClientConfig
from lastcall.client.api import ConnectionLost
from lastcall.client.informer import Informer
from lastcall.client.kubeconfig import client_for
from lastcall.cluster.joined.enroll import approve
from lastcall.cluster.joined.facts import Joined
from lastcall.cluster.joined.requests import (
    Wanted,
    is_approved,
    kube_proxy,
    kubelet_client,
    kubelet_server,
    may_be_approved,
)
from lastcall.world import walls
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

RETRY_SECONDS = 2.0


def wanted_of(joined: Joined) -> tuple[Wanted, ...]:
    """What such a node asks for."""
    name = joined.node_name
    return kubelet_client(name), kubelet_server(name, joined.node_ip), kube_proxy()


async def keep_approving(world: World, administrator: ClientConfig, joined: Joined, say: Callable[[str], None]) -> None:
    """Until cancelled. Raises KubeconfigError."""
    client = client_for(administrator, user_agent="lastcall-node-join")
    wanted = wanted_of(joined)

    async def one(name: str) -> None:
        while True:
            try:
                await approve(client, name)
            except StatusError as error:
                say(f"certificate request {name} cannot be approved: {error.message}")
            except ConnectionLost:
                await world.clock.sleep(RETRY_SECONDS)
                continue
            else:
                say(f"certificate request {name} is approved")
            return

    async with Tasks() as tasks:

        def seen(csr: Object) -> None:
            if not is_approved(csr) and may_be_approved(csr, wanted, joined.user):
                name = name_of(csr)
                tasks.spawn(walls.guarded("approvals", name, one(name)), name=f"approve {name}")

        requests: Informer[Object] = Informer(client, CERTIFICATESIGNINGREQUESTS, world=world)
        requests.add_handler(seen)
        try:
            await requests.run()
        finally:
            tasks.cancel()
            await client.close()
