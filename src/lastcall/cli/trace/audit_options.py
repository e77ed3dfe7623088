"""The options of `lastcall trace` for an audit log."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.options import audit_log_option
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.trace.exporting import Listen


@dataclass(frozen=True, slots=True)
class AuditSource:
    """Where audit events come from: a file or `-`, or an address to listen at; neither for nowhere."""

    log: str = ""
    listen: "Listen | None" = None

    def __bool__(self) -> bool:
        return bool(self.log or self.listen)


def audit_source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, handed to the command as one AuditSource `audit`."""

    @audit_log_option(
        "Name who deleted, evicted, scaled or changed what, by the API server's audit log (JSON lines, followed as it "
        "grows; -: stdin)."
    )
    @click.option(
        "--audit-webhook",
        metavar="ADDRESS:PORT",
        default="",
        help="Like --audit-log, for events that the API server sends to this address (--audit-webhook-config-file).",
    )
    @wraps(command)
    def gathered(*args: Any, audit_log: str, audit_webhook: str, **more: Any) -> Any:
        if audit_log and audit_webhook:
            raise click.UsageError("--audit-log and --audit-webhook: give one of them")
        if (audit_log or audit_webhook) and more["serve"] is not None:
            raise click.UsageError("--serve has no place for users; fix: leave out --audit-log and --audit-webhook")
        return command(*args, audit=AuditSource(audit_log, _listen(audit_webhook)), **more)

    return gathered


def _listen(address: str) -> "Listen | None":
    """Raises click.UsageError."""
    if not address:
        return None
    # late: only with a webhook
    from lastcall.trace.exporting import AddressError, parse_listen

    try:
        return parse_listen(address, "127.0.0.1:9465")
    except AddressError as error:
        raise click.UsageError(f"--audit-webhook: {error}") from error
