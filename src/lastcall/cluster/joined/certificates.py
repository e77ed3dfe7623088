"""Gets the certificates of a node, and renews them. Source: client-go util/certificate/certificate_manager.go."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from lastcall.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.api.resources import CERTIFICATESIGNINGREQUESTS
from lastcall.client.api import Client, ConnectionLost
from lastcall.cluster.joined.files import Pair, PairFile
from lastcall.cluster.joined.requests import Wanted, answer_of, is_good, new_key, renew_at, request_of
from lastcall.world.clock import monotonic, now
from lastcall.world.world import World

log = logging.getLogger(__name__)

LOOK_SECONDS, LONGEST_LOOK_SECONDS = 0.25, 5.0
"""Between two looks at a request that nobody has decided on."""
PATIENT_SECONDS = 3.0
"""Before anybody is told that a request waits: controllers take a moment."""
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 2.0, 600.0
LONGEST_SLEEP_SECONDS = 3600.0
"""A machine that was suspended, and a clock that was set, are noticed after so long."""


class NotIssued(Exception):
    """The request was denied, or failed."""


async def request_certificate(
    world: World,
    client: Client,
    file: PairFile,
    wanted: Wanted,
    *,
    waits: Callable[[str], None],
    asked: Callable[[str], Awaitable[None]] | None = None,
) -> Pair:
    """Ask, wait, and keep what was issued. `asked` hears the request's name once it is there, `waits` when nobody has
    decided on it `PATIENT_SECONDS` later.

    Whoever is killed meanwhile continues with the same request. Raises NotIssued, StatusError, ConnectionLost.
    """
    key = file.pending_key()
    try:
        request = request_of(wanted, key)
    except ValueError:
        key = new_key()
        file.keep_pending(key)
        request = request_of(wanted, key)
    name = str(request["metadata"]["name"])
    try:
        await client.create(CERTIFICATESIGNINGREQUESTS, request)
    except StatusError as error:
        if not is_already_exists(error):
            raise
    if asked is not None:
        await asked(name)
    delay, begun, told = LOOK_SECONDS, monotonic(world.clock), False
    while True:
        try:
            certificate, why = answer_of(await client.get(CERTIFICATESIGNINGREQUESTS, name))
        except StatusError as error:
            if not is_not_found(error):
                raise
            certificate, why = b"", "the request is gone: nobody decided on it in time"
        except ConnectionLost as error:
            log.warning("certificate request %s: %s", name, error)
            certificate, why = b"", ""
        if why:
            file.forget_pending()
            raise NotIssued(f"certificate request {name} of signer {wanted.signer}: {why}")
        if certificate:
            pair = Pair(certificate, key)
            file.write(pair)
            return pair
        if not told and monotonic(world.clock) - begun >= PATIENT_SECONDS:
            told = True
            waits(name)
        await world.clock.sleep(delay)
        delay = min(delay * 1.5, LONGEST_LOOK_SECONDS)


class CertificateManager:
    """Keeps one certificate good. `run` until cancelled; `on_pair` hears each, the kept one first."""

    def __init__(
        self, world: World, client: Client, file: PairFile, wanted: Wanted, on_pair: Callable[[Pair], None]
    ) -> None:
        self._world, self._client, self._file, self._wanted, self._on_pair = world, client, file, wanted, on_pair

    @property
    def name(self) -> str:
        return self._wanted.file

    async def run(self) -> None:
        pair = self._file.read()
        if pair is not None and is_good(pair.certificate, self._wanted, now(self._world.clock)):
            self._on_pair(pair)
        else:
            pair = None
        delay = RETRY_SECONDS
        while True:
            if pair is not None:
                await self._sleep_until(renew_at(pair.certificate, self._world.random.random()))
            try:
                pair = await request_certificate(self._world, self._client, self._file, self._wanted, waits=self._waits)
                self._on_pair(pair)
                log.info("%s: a certificate was issued", self._wanted.file)
                delay = RETRY_SECONDS
            except (NotIssued, StatusError, ConnectionLost) as error:
                log.warning("%s: no certificate: %s", self._wanted.file, error)
                await self._world.clock.sleep(delay)
                delay = min(delay * 2, LONGEST_RETRY_SECONDS)

    def _waits(self, name: str) -> None:
        log.warning("%s: waits for an approval: kubectl certificate approve %s", self._wanted.file, name)

    async def _sleep_until(self, moment: datetime) -> None:
        while (left := (moment - now(self._world.clock)).total_seconds()) > 0:
            await self._world.clock.sleep(min(left, LONGEST_SLEEP_SECONDS))
