"""Which cluster is meant, and as whom it is asked."""

from dataclasses import field

from lastcall.kube.client import Impersonation
from lastcall.world.dataclass import dataclass

REQUEST_SECONDS = 60.0
"""What an API server gives a request itself (--request-timeout)."""


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """What was asked for; empty is what the kubeconfig says. `request_timeout` is in seconds, 0 for none."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    impersonate: Impersonation = field(default_factory=Impersonation)
    request_timeout: float = REQUEST_SECONDS
    insecure_skip_tls_verify: bool = False
