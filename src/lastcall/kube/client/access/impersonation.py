"""Whom the API server is to take the user for.

Source: client-go transport/round_trippers.go.
"""

# check: pure

import string

from lastcall.world.dataclass import dataclass

_LEGAL = frozenset(string.ascii_letters + string.digits + "!#$&'*+-.^_`|~")
"""Bytes that a header's name may have, but for `%`. (round_trippers.go:legalHeaderByte)"""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom the API server is to take the user for; `user` "" is nobody else."""

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of impersonation. (round_trippers.go:impersonatingRoundTripper)"""
        if not self.user:
            return []
        found = [("Impersonate-User", self.user)]
        found += [("Impersonate-Uid", self.uid)] if self.uid else []
        found += [("Impersonate-Group", group) for group in self.groups]
        return found + [(f"Impersonate-Extra-{_escaped(key)}", value) for key, value in self.extra]


def _escaped(key: str) -> str:
    return "".join(chr(byte) if chr(byte) in _LEGAL else f"%{byte:02X}" for byte in key.encode())
