"""The certificates of a node, as files of its state directory: one file each, certificate and key together.

Written as a whole and put in place (`kubelet-client-current.pem` is the kubelet's own way): whoever dies in between
leaves the one before.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lastcall.client.access.credentials import Proof
from lastcall.client.access.tls import make_ssl_context
from lastcall.world.files import replace_file

KUBELET_CLIENT, KUBELET_SERVER, KUBE_PROXY = "kubelet-client.pem", "kubelet-server.pem", "kube-proxy.pem"
DIRECTORY = "pki"
_KEY = b"-----BEGIN PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class Pair:
    """PEM."""

    certificate: bytes
    key: bytes


class PairFile:
    """`read` what is there, `write` what comes next. `pending_key` is that of a request which is not answered yet."""

    def __init__(self, directory: str | Path, name: str) -> None:
        self.path = Path(directory) / name
        self._pending = Path(directory) / f"{name}.key"

    def read(self) -> Pair | None:
        """None when the file is missing or not complete."""
        try:
            certificate, mark, key = self.path.read_bytes().partition(_KEY)
        except OSError:
            return None
        return Pair(certificate, mark + key) if certificate and key else None

    def write(self, pair: Pair) -> None:
        """Raises OSError."""
        _put(self.path, pair.certificate.rstrip() + b"\n" + pair.key)
        self.forget_pending()

    def pending_key(self) -> bytes:
        """Empty when no request waits."""
        try:
            return self._pending.read_bytes()
        except OSError:
            return b""

    def keep_pending(self, key: bytes) -> None:
        """Raises OSError."""
        _put(self._pending, key)

    def forget_pending(self) -> None:
        with suppress(FileNotFoundError):
            self._pending.unlink()

    def forget(self) -> None:
        """The certificate, and the request for one."""
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.forget_pending()

    def stamp(self) -> tuple[int, int]:
        """Another one when the file is another one."""
        try:
            found = os.stat(self.path)
        except OSError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns


class FileCredentials:
    """`lastcall.client.http.Proving`: with the certificate in a file, as it is when a request is sent."""

    def __init__(self, file: PairFile, ca_certificate: bytes) -> None:
        self._file, self._ca = file, ca_certificate
        self._stamp = (0, 0)
        self._proof = Proof("", make_ssl_context(ca_pem=ca_certificate))

    async def proof(self) -> Proof:
        if (stamp := self._file.stamp()) != self._stamp and (pair := self._file.read()) is not None:
            self._stamp = stamp
            tls = make_ssl_context(ca_pem=self._ca, cert_pem=pair.certificate, key_pem=pair.key)
            self._proof = Proof("", tls)
        return self._proof

    async def refused(self, proof: Proof) -> bool:
        return await self.proof() is not proof


def _put(path: Path, content: bytes) -> None:
    replace_file(str(path), content, temporary=str(path.with_name(f".{path.name}.new")), durable=True)
