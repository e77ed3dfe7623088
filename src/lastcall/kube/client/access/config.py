"""What one context of a kubeconfig says, as data.

Source: client-go tools/clientcmd/api/types.go.
"""

# check: pure

import string
from dataclasses import dataclass, field
from typing import Any, Literal

InteractiveMode = Literal["Never", "IfAvailable", "Always"]

_LEGAL = frozenset(string.ascii_letters + string.digits + "!#$&'*+-.^_`|~")
"""Bytes that a header's name may have, but for `%`. (round_trippers.go:legalHeaderByte)"""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that gives credentials (client.authentication.k8s.io). `config` comes from the cluster's extension."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = ""
    interactive_mode: InteractiveMode = "IfAvailable"
    install_hint: str = ""
    provide_cluster_info: bool = False
    config: Any = field(default=None, repr=False)


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


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What one context says. PEM texts are bytes, empty when not given; `namespace` "" is not given.

    `…_file` are the absolute paths that the texts came from, "" for those that are part of the kubeconfig: a long-lived
    client reads them again. `context` "" is the configuration of a Pod (its ServiceAccount).
    """

    server: str
    namespace: str = ""
    ca_pem: bytes = b""
    cert_pem: bytes = b""
    key_pem: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    context: str = ""
    cluster: str = ""
    user: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | None = None
    impersonate: Impersonation = Impersonation()
    proxy_url: str = field(default="", repr=False)
    disable_compression: bool = False

    def proves(self) -> str:
        """Return how the user is proved, in words; "" for an anonymous one."""
        ways = (
            (self.token_file, f"the token in {self.token_file}"),
            (self.token, "a token"),
            (self.username or self.password, f"the password of {self.username!r}"),
            (self.cert_pem, "a client certificate"),
            (self.plugin, f"the credential plugin {self.plugin.command!r}" if self.plugin else ""),
        )
        return next((words for given, words in ways if given), "")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What options say in place of the kubeconfig; empty is not given. (clientcmd/overrides.go)"""

    context: str = ""
    namespace: str = ""
    impersonate: Impersonation = Impersonation()
    insecure_skip_tls_verify: bool = False


def _escaped(key: str) -> str:
    return "".join(chr(byte) if chr(byte) in _LEGAL else f"%{byte:02X}" for byte in key.encode())
