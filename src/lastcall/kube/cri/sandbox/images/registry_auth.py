"""What a registry says in `WWW-Authenticate`, and what answers it. Pure.

Source: RFC 9110 section 11, distribution spec/auth.
"""

# check: pure

import base64
import json
import re

from lastcall.kube.cri.api import AuthConfig
from lastcall.world.dataclass import dataclass

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'\s*({_WORD})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_WORD}))\s*(?:,|$)')
_SCHEME = re.compile(rf"\s*,*\s*({_WORD})(?:\s+|\s*,|$)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """`scheme` and the names of `parameters` are in lower case."""

    scheme: str
    parameters: dict[str, str]


def parse_challenges(headers: list[str]) -> list[Challenge]:
    """Parse all challenges of all headers, several in one header too. What cannot be read ends a header."""
    found = []
    for header in headers:
        position = 0
        while match := _SCHEME.match(header, position):
            position = match.end()
            parameters: dict[str, str] = {}
            while parameter := _PARAMETER.match(header, position):
                name, quoted, plain = parameter.groups()
                parameters[name.lower()] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain
                position = parameter.end()
            found.append(Challenge(match[1].lower(), parameters))
    return found


def basic(auth: AuthConfig) -> str:
    """Return the value of an Authorization header."""
    return f"Basic {base64.b64encode(f'{auth.username}:{auth.password}'.encode()).decode()}"


def read_token(body: bytes) -> str:
    """Read the token of a token server's answer. Raises ValueError."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the token server's answer is not JSON") from None
    token = (value.get("token") or value.get("access_token")) if isinstance(value, dict) else None
    if not isinstance(token, str) or not token or not token.isascii() or any(c.isspace() for c in token):
        raise ValueError("the token server's answer has no token")
    return token
