"""The audit log of `lastcall trace`: where it comes from, and what is said about it."""

import asyncio
from collections.abc import Callable

from lastcall.cli.trace.audit_options import AuditSource
from lastcall.errors import WorldError
from lastcall.trace import AuditFile, AuditIndex, AuditInput, receiving
from lastcall.trace.exporting import Listen
from lastcall.world.world import World

FILE_SECONDS = 2.0
"""How long a story waits for its event: kube-apiserver writes the file before it answers."""
WEBHOOK_SECONDS = 35.0
"""kube-apiserver sends events when 30 s are over, or it has 400 (--audit-webhook-batch-max-wait, -max-size)."""


class TraceAudit:
    """`run` until cancelled. Raises UserError for a file that cannot be read."""

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
        self.seconds, self._listen = WEBHOOK_SECONDS, source.listen

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
                    self._note("every client that reaches that address can send events: let only the API server")
                await asyncio.Event().wait()
        except OSError as error:
            raise WorldError(
                f"--audit-webhook {listen}: cannot listen: {error.strerror or error}; fix: name another port"
            ) from error

    def summary(self) -> str:
        """Return what was read, in a sentence."""
        return self._input.summary()
