"""Why a certificate was not accepted, from OpenSSL's word and the certificate itself. Pure.

Source: openssl x509_vfy.h (X509_V_ERR_…).
"""

# check: pure

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Literal

from lastcall.world.dataclass import dataclass

Problem = Literal["expired", "not yet valid", "unknown authority", "another name", "other"]

_PROBLEMS: dict[int, Problem] = {
    7: "unknown authority",  # its signature is that of another key
    9: "not yet valid",
    10: "expired",
    18: "unknown authority",  # self-signed
    19: "unknown authority",
    20: "unknown authority",
    21: "unknown authority",
    62: "another name",
    63: "another name",
    64: "another name",
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """What of a certificate helps a reader. Times are UTC."""

    subject: str
    issuer: str
    begins: datetime
    ends: datetime
    names: tuple[str, ...] = ()


def problem_of(verify_code: int) -> Problem:
    return _PROBLEMS.get(verify_code, "other")


def server_sentence(problem: Problem, reason: str, seen: Certificate | None, host: str, now: datetime) -> str:
    """Return what is wrong with the server's certificate, and the fix. `reason` is OpenSSL's."""
    if problem == "expired":
        when = f" at {_time(seen.ends)}, {format_span(now - seen.ends)} ago by this machine's clock" if seen else ""
        fix = "renew it (kubeadm certs renew apiserver), or set this machine's clock"
        return f"the API server's certificate expired{when}. fix: {fix}"
    if problem == "not yet valid":
        when = (
            f" before {_time(seen.begins)}, in {format_span(seen.begins - now)} by this machine's clock" if seen else ""
        )
        return f"the API server's certificate is not valid{when}. fix: set this machine's clock (timedatectl)"
    if problem == "unknown authority":
        issuer = f" ({seen.issuer})" if seen else ""
        return (
            f"the API server's certificate is signed by an authority{issuer} that certificate-authority of the "
            "kubeconfig does not have. fix: get the cluster's kubeconfig again: that of a "
            "cluster that was made anew is another"
        )
    if problem == "another name":
        names = f" for {', '.join(seen.names[:12])}" if seen and seen.names else ""
        return (
            f"the API server's certificate is valid{names}, not for {host}. fix: use one of its names in server, or "
            "say the name to check in tls-server-name"
        )
    return f"the API server's certificate is not accepted: {reason}"


def client_sentence(certificate: Certificate | None, now: datetime) -> str:
    """Return why a client certificate proves nothing, "" if its time does not say."""
    if certificate is None:
        return ""
    if now > certificate.ends:
        when = f"{_time(certificate.ends)}, {format_span(now - certificate.ends)} ago by this machine's clock"
        return f"the client certificate expired at {when}. fix: get a new kubeconfig (kubeadm certs renew admin.conf)"
    if now < certificate.begins:
        return f"the client certificate is valid from {_time(certificate.begins)}, later than this machine's clock"
    return ""


def token_sentence(token: str, now: datetime) -> str:
    """Return why a token that is a JWT proves nothing, "" if its time does not say. Its signature is not looked at."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        ends = datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return ""
    if now <= ends:
        return ""
    return (
        f"the token expired at {_time(ends)}, {format_span(now - ends)} ago by this machine's clock. fix: log in again"
    )


def format_span(span: timedelta) -> str:
    """Return `3 d 4 h`, `1 h 2 min`, `5 s`: the two greatest units."""
    seconds = round(abs(span.total_seconds()))
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    found: list[str] = []
    for name, size in units:
        count, seconds = divmod(seconds, size)
        if count or (found and len(found) < 2):
            found.append(f"{count} {name}")
        if len(found) == 2:
            break
    return " ".join(each for each in found if not each.startswith("0 ")) or "0 s"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
