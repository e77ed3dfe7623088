"""The node's part of published ports: connections that front accepted on the host are carried on into the cluster."""

import asyncio
import socket
from collections.abc import Callable

from lastcall.kube.cluster.egress.pair import Carried, Tell
from lastcall.kube.cluster.splice import reset, splice
from lastcall.world import crash_guard
from lastcall.world.conntrack import connections
from lastcall.world.tasks import Tasks

DIAL_SECONDS = 10.0
"""A target that does not answer is given up after this."""

Address = tuple[str, int]


class Carrier:
    """Dials in the node's network namespace, where the service proxy decides what a Service's address means."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._endpoint: Callable[[Address, Address], str] | None = None

    def take(self, accepted: socket.socket, address: str, port: int, tell: Tell | None = None) -> None:
        """Join `accepted`, owned from now on, to a connection to the target, or reset it.

        `tell` hears which endpoint that was, or how it failed (`egress/pair.py` has the message).
        """
        carry = crash_guard.guarded(
            "published ports", f"{address}:{port}", self._carry(accepted, (address, port), tell)
        )
        self._tasks.spawn(carry, name="published connection")

    async def _carry(self, accepted: socket.socket, address: Address, tell: Tell | None) -> None:
        client = accepted.getpeername()[1] if tell is not None else 0
        target = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        failed = ""
        try:
            accepted.setblocking(False)
            target.setblocking(False)
            async with asyncio.timeout(DIAL_SECONDS):
                await asyncio.get_running_loop().sock_connect(target, address)
        except TimeoutError:
            failed = "connect timeout"
        except OSError as error:
            failed = "refused" if isinstance(error, ConnectionError) else "unreachable"
        if tell is not None:
            endpoint = "" if failed else self._leads_to(target.getsockname(), address)
            tell(Carried(port=client, endpoint=endpoint, failed=failed))
        if failed:
            target.close()
            reset(accepted)
            return
        await splice(accepted, target)

    def _leads_to(self, local: Address, address: Address) -> str:
        if self._endpoint is None:
            tracking = connections()  # stays open as long as the node lives
            self._endpoint = tracking.endpoint if tracking is not None else lambda *_: ""
        return self._endpoint(local, address)
