"""What a client proves its user with, request by request: tokens and certificates that others replace meanwhile.

Files are looked at again after `AGAIN_SECONDS` (kubelets rotate the tokens of Pods, cert-manager certificates). A
credential plugin is asked when its answer has expired. After a 401 both are asked at once, and where there is something
new the request is sent again, once; kubectl leaves that to its user.

Source: client-go transport/token_source.go, cert_rotation.go, plugin/pkg/client/auth/exec/exec.go.
"""

# check: many attributes Credentials because a kubeconfig has so many ways to say who asks, and each may be renewed

import asyncio
import base64
import ssl
from collections.abc import Callable

from lastcall.kube.client.access.config import ClientConfig
from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.exec_credential import Answer
from lastcall.kube.client.access.plugin import PluginError, Say, ask
from lastcall.kube.client.access.selecting import MOST_BYTES
from lastcall.kube.client.access.tls import make_ssl_context
from lastcall.kube.client.access.values import header_problem
from lastcall.kube.client.api import ConnectionLost
from lastcall.world import blocking
from lastcall.world.dataclass import dataclass
from lastcall.world.files import read_regular

__all__ = ["Credentials", "CredentialsFailed", "Proof", "Say"]

AGAIN_SECONDS = 10.0
"""Between two looks at a file, and after a plugin that failed or whose answer was refused."""


class CredentialsFailed(ConnectionLost):
    """There are no credentials to send: the request was not sent."""

    sent = False


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """`authorization` is the header, "" for none; `tls` has the client certificate."""

    authorization: str
    tls: ssl.SSLContext | None


class Credentials:
    """Of one user at one cluster. Raises KubeconfigError for a certificate that is not PEM."""

    def __init__(
        self, config: ClientConfig, say: Say | None = None, monotonic: Callable[[], float] = blocking.monotonic
    ) -> None:
        self._config, self._say, self._monotonic = config, say, monotonic
        self._token, self._ca, self._cert, self._key = config.token, config.ca_pem, config.cert_pem, config.key_pem
        self._files = bool(config.token_file or config.ca_file or config.cert_file or config.key_file)
        self._answer: Answer | None = None
        self._plugin_rests, self._plugin_failed = float("-inf"), ""
        self._lock = asyncio.Lock()
        self._looked = monotonic()
        self._proof = Proof("", self._tls(self._answer))
        self._proof = self._made()

    async def proof(self) -> Proof:
        """Return the proof of identity for the next request. Raises CredentialsFailed."""
        if self._files and self._monotonic() - self._looked >= AGAIN_SECONDS:
            self._look()
        if self._config.plugin is not None and not self._config.token and self._has_expired():
            async with self._lock:
                if self._has_expired():
                    await self._ask()
        return self._proof

    async def refused(self, proof: Proof) -> bool:
        """Return whether there is another proof after the server's 401 to `proof`. Raises CredentialsFailed."""
        if proof is self._proof and self._files:
            self._look()
        if proof is self._proof and self._config.plugin is not None:
            async with self._lock:
                if proof is self._proof and self._monotonic() >= self._plugin_rests:
                    await self._ask()
                    self._plugin_rests = self._monotonic() + AGAIN_SECONDS
        return proof is not self._proof

    def _has_expired(self) -> bool:
        answer = self._answer
        return answer is None or (answer.expires is not None and blocking.wall() > answer.expires)

    async def _ask(self) -> None:
        plugin = self._config.plugin
        assert plugin is not None
        if self._plugin_failed and self._monotonic() < self._plugin_rests:
            raise CredentialsFailed(self._plugin_failed)
        try:
            answer = await ask(self._config, plugin, self._say)
            before, self._answer = self._answer, answer
            if before is None or (before.token, before.cert_pem) != (answer.token, answer.cert_pem):
                self._proof = self._made()
            self._plugin_failed = ""
        except (PluginError, KubeconfigError) as error:
            self._plugin_failed = f"getting credentials: {error}"
            self._plugin_rests = self._monotonic() + AGAIN_SECONDS
            raise CredentialsFailed(self._plugin_failed) from None

    def _look(self) -> None:
        """Read the files again. What cannot be read, or does not fit together yet, stays as it was."""
        self._looked = self._monotonic()
        config = self._config
        found = (
            _read(config.token_file, self._token.encode()).strip().decode("utf-8", "replace") or self._token,
            _read(config.ca_file, self._ca),
            _read(config.cert_file, self._cert),
            _read(config.key_file, self._key),
        )
        before = (self._token, self._ca, self._cert, self._key)
        if found == before or header_problem(found[0]):
            return
        self._token, self._ca, self._cert, self._key = found
        try:
            self._proof = self._made(tls=found[1:] != before[1:])
        except KubeconfigError:
            self._token, self._ca, self._cert, self._key = before

    def _made(self, tls: bool = True) -> Proof:
        return Proof(self._authorization(), self._tls(self._answer) if tls else self._proof.tls)

    def _authorization(self) -> str:
        config = self._config
        if self._token:
            return f"Bearer {self._token}"
        if config.username or config.password:
            return f"Basic {base64.b64encode(f'{config.username}:{config.password}'.encode()).decode()}"
        return f"Bearer {self._answer.token}" if self._answer is not None and self._answer.token else ""

    def _tls(self, answer: Answer | None) -> ssl.SSLContext | None:
        config, cert, key = self._config, self._cert, self._key
        if not config.server.startswith("https://"):
            return None
        if not cert and answer is not None:
            cert, key = answer.cert_pem, answer.key_pem
        return make_ssl_context(
            ca_pem=self._ca, cert_pem=cert, key_pem=key, insecure_skip_tls_verify=config.insecure_skip_tls_verify
        )


def _read(file: str, before: bytes) -> bytes:
    try:
        return read_regular(file, MOST_BYTES) or before
    except OSError:
        return before
