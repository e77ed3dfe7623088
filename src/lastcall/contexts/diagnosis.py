"""What went wrong between a command and a cluster, for its user: what is the matter, and the fix."""

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lastcall.contexts.clocks import Offset, Sample, offset_of
from lastcall.contexts.untrusted_server import look_at, read_certificate
from lastcall.errors import LastcallError, UserError, WorldError
from lastcall.kube.api import StatusError
from lastcall.kube.client import (
    ConnectionLost,
    CredentialsFailed,
    Impersonation,
    UnusableAnswer,
    client_sentence,
    commands_for,
    format_span,
    impersonation_rights,
    is_about_impersonation,
    missing_right,
    problem_of,
    server_sentence,
    token_sentence,
)
from lastcall.records.quoting import one_line
from lastcall.world.blocking import wall

if TYPE_CHECKING:
    from lastcall.kube.client import ClientConfig

NOBODY_ELSE = Impersonation()

CLOCK_SECONDS = 60.0
"""A larger clock skew is reported: certificates and tokens are judged by both clocks."""


async def explained(error: StatusError | ConnectionLost, context: str, config: "ClientConfig") -> LastcallError:
    """Return the error to raise in place of it. `context` is the name under which the user knows the cluster."""
    where = f"context {context!r} ({config.server})"
    if isinstance(error, CredentialsFailed):
        return WorldError(f"{where}: {error}")
    if isinstance(error, UnusableAnswer):
        return WorldError(f"{where}: {error}")
    if isinstance(error, ConnectionLost):
        refused = certificate_error(error)
        if refused is not None:
            return WorldError(f"{where}: {await _about_certificate(refused, config)}")
        return WorldError(f"{where}: {unreachable(error, config.server)}")
    message = one_line(error.message)
    if error.code == 401:
        return UserError(f"{where}: {await _about_user(config, message)}")
    if error.code == 403:
        return UserError(f"{where}: {forbidden_text(error, message, config.impersonate)}")
    return WorldError(f"{where}: the API server answers: {message}")


def forbidden_text(error: StatusError, message: str, asked: Impersonation = NOBODY_ELSE) -> str:
    """Return what a user may not do, and the commands that allow it. `asked`: whom the user acts as."""
    right = missing_right(error.status)
    rights = [] if right is None else [right]
    if right is not None and asked.user and is_about_impersonation(right):
        rights = impersonation_rights(right.user, asked)
    commands = commands_for(rights)
    if right is None or not commands:
        return message
    listed = "\n".join(f"  {command}" for command in commands)
    lacks = f"missing permission of {right.user}: {'; '.join(each.words for each in rights)}"
    return f"{message}\n{lacks}. fix, as an administrator:\n{listed}"


def unreachable(error: ConnectionLost, server: str) -> str:
    """Describe a server that did not answer, by the error below."""
    host = urlsplit(server).netloc
    for each in _below(error):
        if isinstance(each, ConnectionRefusedError):
            return f"the connection to the server {host} was refused - did you specify the right host or port?"
        if isinstance(each, ssl.SSLError) and getattr(each, "reason", "") == "WRONG_VERSION_NUMBER":
            return f"the server {host} does not speak TLS: write http:// in server, or use another port"
        if isinstance(each, TimeoutError):
            return f"the server {host} does not answer in time: check the VPN, the proxy and the address"
    return f"the server {host} cannot be reached: {error}"


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the error of a server whose certificate was refused, None for any other error."""
    found = (each for each in _below(error) if isinstance(each, ssl.SSLCertVerificationError))
    return next((each for each in found if hasattr(each, "verify_code")), None)  # aiohttp's is of the class, too


def clock_of(sample: Sample | None) -> Offset | None:
    return offset_of([sample]) if sample is not None and sample.received >= sample.sent else None


def clock_sentence(offset: Offset | None) -> str:
    """Return how far the clocks are apart, "" while they agree. Which one is wrong is not known."""
    if offset is None or abs(offset.seconds) - offset.error < CLOCK_SECONDS:
        return ""
    side = "behind" if offset.seconds > 0 else "ahead of"
    span = format_span(timedelta(seconds=offset.seconds))
    return (
        f"this machine's clock is {span} {side} the API server's (its answer's Date): one of them is wrong, and both "
        f"decide whether certificates and tokens are valid"
    )


async def _about_certificate(refused: ssl.SSLCertVerificationError, config: "ClientConfig") -> str:
    seen = await look_at(config.server, config.tls_server_name) if not config.proxy_url else None
    host = config.tls_server_name or urlsplit(config.server).hostname or ""
    certificate = None if seen is None else seen.certificate
    sentence = server_sentence(problem_of(refused.verify_code), refused.verify_message, certificate, host, _now())
    clock = clock_sentence(clock_of(seen.clock)) if seen is not None else ""
    return f"{sentence}\n{clock}" if clock else sentence


async def _about_user(config: "ClientConfig", message: str) -> str:
    """You must be logged in: why, by what can be seen of the credentials."""
    proves = config.proves()
    if not proves:
        who = f"user {config.user!r} of the kubeconfig"
        return f"You must be logged in to the server ({message}): {who} has no credentials"
    now, why = _now(), ""
    if config.cert_pem:
        why = client_sentence(read_certificate(config.cert_pem), now)
    why = why or token_sentence(config.token, now)
    why = why or "fix: log in again, or fetch the kubeconfig again: a cluster that was created anew has another one"
    seen = await look_at(config.server, config.tls_server_name) if not config.proxy_url else None
    clock = clock_sentence(clock_of(seen.clock)) if seen is not None else ""
    text = f"You must be logged in to the server ({message}): it does not accept {proves}. {why}"
    return f"{text}\n{clock}" if clock else text


def _below(error: BaseException | None) -> list[BaseException]:
    """The error and those that it comes from."""
    found: list[BaseException] = []
    while error is not None and error not in found and len(found) < 20:
        found.append(error)
        inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return found


def _now() -> datetime:
    return datetime.fromtimestamp(wall(), UTC)
