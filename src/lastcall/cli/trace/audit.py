"""The audit log of `lastcall trace`: where it comes from, and what is said about it."""

import asyncio
from collections.abc import Callable

from lastcall.cli.trace.audit_options import AuditSource
from lastcall.errors import UserError, WorldError
from lastcall.trace import AuditFile, AuditIndex, AuditInput, receiving
from lastcall.trace.exporting import AddressError, Listen, parse_listen
from lastcall.world.world import World

FILE_SECONDS = 2.0
"""How long a story waits for its event: kube-apiserver writes the file before it answers."""
WEBHOOK_SECONDS = 35.0
"""kube-apiserver sends events when 30 s are over, or it has 400 (--audit-webhook-batch-max-wait, -max-size)."""
_EXAMPLE = "127.0.0.1:9465"


class TraceAudit:
    """`run` until cancelled. Raises UserError for a file or an address that cannot be meant so."""

    def __init__(self, source: AuditSource, world: World, note: Callable[[str], None]) -> None:
        self.index = AuditIndex()
        self._input = AuditInput(self.index, note)
        self._note = note
        self._file: AuditFile | None = None
        self._listen: Listen | None = None
        self.seconds = FILE_SECONDS
        if source.log:
            self._file = AuditFile(source.log, world, self._input)
            self._file.check()
            return
        self.seconds = WEBHOOK_SECONDS
        try:
            self._listen = parse_listen(source.webhook, _EXAMPLE)
        except AddressError as error:
            raise UserError(f"--audit-webhook: {error}") from error

    async def run(self) -> None:
        """Read until cancelled. Raises WorldError if the address is taken."""
        if self._file is not None:
            try:
                await self._file.run()
            finally:
                self._file.close()
        elif self._listen is not None:
            await self._receive(self._listen)

    async def _receive(self, listen: Listen) -> None:
        try:
            async with receiving(listen, self._input) as real:
                self._note(f"audit events are taken at http://{real}")
                if not real.loopback:
                    self._note("whoever reaches that address can send events: let only the API server")
                await asyncio.Event().wait()
        except OSError as error:
            raise WorldError(
                f"--audit-webhook {listen}: cannot listen: {error.strerror or error}; fix: name another port"
            ) from error

    def summary(self) -> str:
        """Return what was read, in a sentence."""
        return self._input.summary()
