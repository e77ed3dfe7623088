"""What one context of a kubeconfig says, as data.

Source: client-go tools/clientcmd/api/types.go.
"""

# check: pure

from dataclasses import field
from typing import Any, Literal

from lastcall.kube.client.access.impersonation import Impersonation
from lastcall.world.dataclass import dataclass

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


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
    impersonate: Impersonation = field(default_factory=Impersonation)
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
    impersonate: Impersonation = field(default_factory=Impersonation)
    insecure_skip_tls_verify: bool = False
