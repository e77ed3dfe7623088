"""The controllers of CertificateSigningRequests start, and are imported, with the first one."""

import asyncio
from typing import TYPE_CHECKING

from lastcall.kube.api.resources import CERTIFICATESIGNINGREQUESTS
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.informers import Informers
from lastcall.world import crash_guard
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.controllers.access.certificates.controller import Sign

NAME = "certificatesigningrequest-signing-controller"


class FirstRequest:
    def __init__(self, world: World, client: Client, informers: Informers, sign: "Sign | None") -> None:
        self._world, self._client, self._informers, self._sign = world, client, informers, sign
        self._needed = asyncio.Event()
        informers.get(CERTIFICATESIGNINGREQUESTS).add_handler(lambda request: self._needed.set())

    async def run(self) -> None:
        """Work until cancelled."""
        await self._needed.wait()
        # late: cryptography takes 60 ms and 12 MB
        from lastcall.kube.controllers.access.certificates.controller import CertificateController

        controller = CertificateController(self._world, self._client, self._informers, self._sign)
        await crash_guard.keep_running(NAME, controller.run, self._world.clock)
