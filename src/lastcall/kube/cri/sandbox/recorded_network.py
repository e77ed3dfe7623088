"""The Pod network as the runtime uses it: what is connected and disconnected is on record, with the time it took."""

# check: observes because it sees what the Pod network answered

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.objects import Sandbox
from lastcall.kube.cri.sandbox.spec import NETWORK, Network
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import Clock, monotonic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lastcall.records.definitions.runtime import NetworkAttached, NetworkDetached
    from lastcall.records.record import Facts, Kind

log = logging.getLogger(__name__)


class RecordedNetwork:
    """Keeps `ip` and `attached` of sandboxes true."""

    def __init__(self, network: Network, recorder: Recorder, clock: Clock) -> None:
        self._network, self._recorder, self._clock = network, recorder, clock

    async def adopt(self, sandboxes: "Iterable[Sandbox]") -> None:
        """Adopt what an earlier node process attached."""
        there = [sandbox for sandbox in sandboxes if sandbox.attached]
        addressed = {sandbox.ip: sandbox for sandbox in there}
        for sandbox in there:
            # An address that was released and handed out again in the last moment is the newer one's.
            sandbox.attached = addressed[sandbox.ip] is sandbox
            if sandbox.attached:
                try:
                    await self._network.adopt(sandbox.id, sandbox.ip, sandbox.config)
                except RuntimeServiceError as error:
                    # The cluster was started again with another Pod network; nothing of the one before is left.
                    log.warning("sandbox %s is not in this Pod network: %s", sandbox.id, error)
                    sandbox.attached = False
                except Exception as error:
                    sandbox.attached = False
                    crash_guard.caught(NETWORK, sandbox.id, error)

    async def attach(self, sandbox: Sandbox, netns_fd: int) -> None:
        """Attach a sandbox. Raises RuntimeServiceError."""
        sandbox.attached = True  # from here on it may be, whatever happens to the call
        started = monotonic(self._clock)
        sandbox.ip = await self._network.attach(sandbox.id, netns_fd, sandbox.config.metadata.uid, sandbox.config)
        attached: NetworkAttached = {"ip": sandbox.ip, "seconds": monotonic(self._clock) - started}
        self._record(kinds.NETWORK_ATTACHED, sandbox, attached, rules.RUN_POD_SANDBOX)

    async def detach(self, sandbox: Sandbox) -> None:
        """Detach a sandbox. Raises RuntimeServiceError; it can be repeated then."""
        started = monotonic(self._clock)
        try:
            await self._network.detach(sandbox.id, sandbox.ip)
        except RuntimeServiceError as error:
            self._record_detached(sandbox, started, str(error))
            raise
        sandbox.attached = False
        self._record_detached(sandbox, started, "")

    async def discard(self, sandbox: Sandbox) -> None:
        """Detach a sandbox that never came to be, without a record."""
        if sandbox.attached:
            with crash_guard.Turn(NETWORK, sandbox.id), suppress(RuntimeServiceError):
                await self._network.detach(sandbox.id, sandbox.ip)

    async def status(self) -> str:
        """Return why no Pod could be connected now, "" if one could."""
        return await self._network.status()

    def _record_detached(self, sandbox: Sandbox, started: float, error: str) -> None:
        facts: NetworkDetached = {"ip": sandbox.ip, "seconds": monotonic(self._clock) - started, "error": error}
        self._record(kinds.NETWORK_DETACHED, sandbox, facts, rules.STOP_POD_SANDBOX)

    def _record(self, kind: "Kind[Facts]", sandbox: Sandbox, facts: "Facts", rule: rules.Rule) -> None:
        self._recorder.record(kind, pod_uid=sandbox.config.metadata.uid, rule=rule, facts=facts)
