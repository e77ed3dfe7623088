"""Do one TLS handshake with the entrance before the user is asked, and report what is wrong with its certificate."""

import asyncio
import ssl
from datetime import UTC, datetime
from pathlib import Path

from lastcall.contexts import look_at
from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.entrance import Entrance
from lastcall.kube.client import Certificate, Problem, format_span, problem_of
from lastcall.traffic import HTTP1, Secured
from lastcall.world.blocking import wall

SECONDS = 10.0
MOST_BYTES = 1 << 20


def read_ca(file: Path | None) -> str:
    """Return the PEM of `--url-ca`, "" without one. Raises UserError."""
    if file is None:
        return ""
    try:
        with file.open("rb") as opened:
            pem = opened.read(MOST_BYTES).decode("ascii")
        Secured("", pem)
    except (OSError, UnicodeDecodeError, ssl.SSLError) as error:
        raise UserError(f"--url-ca {file}: not a file of PEM certificates: {error}") from error
    if not pem.strip():
        raise UserError(f"--url-ca {file}: the file is empty")
    return pem


def certificate_sentence(problem: Problem, reason: str, seen: Certificate | None, host: str, now: datetime) -> str:
    """Return what is wrong with the entrance's certificate, and the fix. `reason` is OpenSSL's. Pure."""
    if problem == "expired":
        when = f" {format_span(now - seen.ends)} ago by this machine's clock" if seen else ""
        return f"its certificate expired{when}\nfix: renew it, or set this machine's clock"
    if problem == "not yet valid":
        when = f" for another {format_span(seen.begins - now)} by this machine's clock" if seen else ""
        return f"its certificate is not valid yet{when}\nfix: set this machine's clock (timedatectl)"
    if problem == "unknown authority":
        issuer = f" ({seen.issuer})" if seen else ""
        return (
            f"its certificate is signed by a CA{issuer} that this machine does not trust\n"
            "fix: --url-ca FILE with the CA's certificate (PEM)"
        )
    if problem == "another name":
        names = f" for {', '.join(seen.names[:12])}" if seen and seen.names else ""
        return f"its certificate is valid{names}, not for {host}\nfix: use one of its names in --url"
    return f"its certificate is not accepted: {reason}"


async def check_handshake(entrance: Entrance, ca_pem: str) -> None:
    """Raise WorldError where requests could not be sent, with the reason and what to do."""
    where = f"--url {entrance.description}"
    secured = Secured(entrance.tls_name, ca_pem)
    try:
        async with asyncio.timeout(SECONDS):
            _, writer = await asyncio.open_connection(
                entrance.address, entrance.port, ssl=secured.context(HTTP1), server_hostname=entrance.tls_name
            )
            writer.close()
    except TimeoutError as error:
        raise WorldError(f"{where}: no TLS handshake within {SECONDS:g} s") from error
    except ssl.SSLCertVerificationError as error:
        seen = await look_at(f"https://{entrance.host}", entrance.tls_name)
        problem = problem_of(error.verify_code)
        now = datetime.fromtimestamp(wall(), UTC)
        sentence = certificate_sentence(problem, error.verify_message, seen.certificate, entrance.tls_name, now)
        raise WorldError(f"{where}: {sentence}") from error
    except ssl.SSLError as error:
        raise WorldError(
            f"{where}: {entrance.host} does not complete the TLS handshake: {error.reason or error}\n"
            "fix: write http:// in --url if it does not speak TLS"
        ) from error
    except OSError as error:
        raise WorldError(f"{where}: {entrance.host} cannot be reached: {error.strerror or error}") from error
