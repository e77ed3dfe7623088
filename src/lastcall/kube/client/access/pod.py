"""The configuration that every Pod has: the API server's address in variables, the ServiceAccount's files.

Source: client-go rest/config.go:InClusterConfig, clientcmd/client_config.go:inClusterClientConfig.
"""

from collections.abc import Mapping
from pathlib import Path

from lastcall.kube.client.access.config import ClientConfig, Overrides
from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.selecting import MOST_BYTES, impersonation
from lastcall.kube.client.access.values import header_problem, server_problem, without_user
from lastcall.world.files import read_regular

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def pod_config(asked: Overrides, environ: Mapping[str, str], account: Path | None = None) -> ClientConfig | None:
    """Return the configuration of this Pod; None where there is no Pod, or no token. Raises KubeconfigError."""
    folder = account or SERVICE_ACCOUNT
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    token_file, ca_file = folder / "token", folder / "ca.crt"
    if not host or not port or not token_file.is_file():
        return None
    if asked.context:
        raise KubeconfigError(f"context {asked.context!r} does not exist: there is no kubeconfig in this Pod")
    try:
        token = read_regular(str(token_file), MOST_BYTES).decode().strip()
        skips = asked.insecure_skip_tls_verify or not ca_file.exists()
        ca_pem = b"" if skips else read_regular(str(ca_file), MOST_BYTES)
        own = folder / "namespace"
        namespace = environ.get("POD_NAMESPACE") or (own.read_text().strip() if own.exists() else "")
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"the ServiceAccount's files in {folder} cannot be read: {error}") from error
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    if problem := server_problem(server):
        raise KubeconfigError(
            f"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make the URL {without_user(server)!r}: {problem}"
        )
    if problem := header_problem(token):
        raise KubeconfigError(f"{token_file} {problem}")
    return ClientConfig(
        server=server,
        namespace=asked.namespace or namespace,
        ca_pem=ca_pem,
        ca_file=str(ca_file) if ca_pem else "",
        token=token,
        token_file=str(token_file),
        insecure_skip_tls_verify=asked.insecure_skip_tls_verify,
        impersonate=impersonation(type(asked.impersonate)(), asked.impersonate, str(folder)),
    )
