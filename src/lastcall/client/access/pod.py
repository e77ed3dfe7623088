"""The configuration that every Pod has: the API server's address in variables, the ServiceAccount's files.

Source: client-go rest/config.go:InClusterConfig, clientcmd/client_config.go:inClusterClientConfig.
"""

from collections.abc import Mapping
from pathlib import Path

from lastcall.client.access.config import ClientConfig, Overrides
from lastcall.client.access.errors import KubeconfigError
from lastcall.client.access.selecting import impersonation

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def pod_config(asked: Overrides, environ: Mapping[str, str], account: Path | None = None) -> ClientConfig | None:
    """None where this is not a Pod, or one without a token. Raises KubeconfigError."""
    folder = account or SERVICE_ACCOUNT
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    token_file, ca_file = folder / "token", folder / "ca.crt"
    if not host or not port or not token_file.is_file():
        return None
    if asked.context:
        raise KubeconfigError(f"context {asked.context!r} does not exist: there is no kubeconfig in this Pod")
    try:
        token = token_file.read_text().strip()
        ca_pem = b"" if asked.insecure_skip_tls_verify or not ca_file.exists() else ca_file.read_bytes()
        own = folder / "namespace"
        namespace = environ.get("POD_NAMESPACE") or (own.read_text().strip() if own.exists() else "")
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"the ServiceAccount's files in {folder} cannot be read: {error}") from error
    return ClientConfig(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=asked.namespace or namespace,
        ca_pem=ca_pem,
        ca_file=str(ca_file) if ca_pem else "",
        token=token,
        token_file=str(token_file),
        insecure_skip_tls_verify=asked.insecure_skip_tls_verify,
        impersonate=impersonation(type(asked.impersonate)(), asked.impersonate, str(folder)),
    )
