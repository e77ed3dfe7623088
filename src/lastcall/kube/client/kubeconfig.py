"""kubeconfig files: read one to make a client, write one for kubectl.

Source: client-go tools/clientcmd. What files mean together: `access/merging.py`; what a context says:
`access/selecting.py`; credentials that change: `access/credentials.py`.
"""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.tls import make_ssl_context
from lastcall.kube.client.http import HTTPClient, Proving
from lastcall.world.files import read_regular

if TYPE_CHECKING:
    from lastcall.kube.client.access.config import ClientConfig, Overrides
    from lastcall.kube.client.access.plugin import Say

__all__ = [
    "KubeconfigError",
    "client_for",
    "kubeconfig_paths",
    "load_kubeconfig",
    "make_ssl_context",
    "render_kubeconfig",
]

MOST_CONFIG_BYTES = 64 << 20
"""Of a kubeconfig; one with a thousand clusters has 3 MB."""


def kubeconfig_paths(explicit: str = "", environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return the files to read: the explicit one, else those of $KUBECONFIG, else ~/.kube/config."""
    if explicit:
        return [Path(explicit)]
    env = os.environ if environ is None else environ
    listed = [part for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return [Path(part) for part in dict.fromkeys(listed)]
    return [Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"]


def load_kubeconfig(
    path: str = "",
    context: str = "",
    *,
    environ: Mapping[str, str] | None = None,
    overrides: "Overrides | None" = None,
) -> "ClientConfig":
    """Read the files of `kubeconfig_paths` and resolve `context` ("" is current-context). Raises KubeconfigError.

    In a Pod without any kubeconfig it is the ServiceAccount's. (merged_client_builder.go:ClientConfig)
    """
    # late: 20 ms of `up`, which only writes one
    from lastcall.kube.client.access.config import Overrides
    from lastcall.kube.client.access.merging import merged
    from lastcall.kube.client.access.pod import pod_config
    from lastcall.kube.client.access.selecting import MOST_BYTES, select

    asked = overrides or Overrides(context)
    paths = kubeconfig_paths(path, environ)
    files = [(str(file.absolute()), _read_file(file)) for file in paths if path or file.exists()]
    if not any(data for _, data in files):
        own = None if path else pod_config(asked, os.environ if environ is None else environ)
        if own is not None:
            return own
    if not files:
        where = ", ".join(map(str, paths))
        raise KubeconfigError(f"no kubeconfig found at {where}: set KUBECONFIG or name a file (--kubeconfig)")
    return select(merged(files), asked, lambda name: read_regular(name, MOST_BYTES))


def client_for(
    config: "ClientConfig", *, say: "Say | None" = None, credentials: Proving | None = None, **options: Any
) -> HTTPClient:
    """Return an HTTPClient for `config`; `options` go to HTTPClient (user_agent, request_timeout).

    `credentials` are another user's than that of `config`; impersonation is not asked for then.

    `say` gets what a credential plugin writes to stderr. Raises KubeconfigError.
    """
    # late: 20 ms of `up`, which only writes one
    from lastcall.kube.client.access.credentials import Credentials
    from lastcall.kube.client.access.proxies import proxy_for

    return HTTPClient(
        config.server,
        ssl_context=None,
        credentials=credentials or Credentials(config, say),
        tls_server_name=config.tls_server_name,
        headers=() if credentials is not None else config.impersonate.headers(),
        proxy=proxy_for(config.server, config.proxy_url, os.environ),
        compress=not config.disable_compression,
        **options,
    )


def render_kubeconfig(
    name: str,
    server: str,
    ca_pem: bytes,
    *,
    token: str = "",
    cert_pem: bytes = b"",
    key_pem: bytes = b"",
    namespace: str = "",
) -> str:
    """Return a kubeconfig with one cluster, user and context `name`, as YAML. It holds secrets: write it with 0600."""
    user: dict[str, str] = {}
    if token:
        user["token"] = token
    if cert_pem:
        user["client-certificate-data"] = base64.b64encode(cert_pem).decode()
        user["client-key-data"] = base64.b64encode(key_pem).decode()
    context = {"cluster": name, "user": name}
    if namespace:
        context["namespace"] = namespace
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca_pem).decode()},
            }
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def _read_file(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_CONFIG_BYTES + 1)
        if len(content) > MOST_CONFIG_BYTES:
            raise KubeconfigError(f"kubeconfig {path} has more than {MOST_CONFIG_BYTES >> 20} MiB")
        return yaml.safe_load(content.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"cannot read kubeconfig {path}: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        why = " ".join(filter(None, (error.context, error.problem)))
        raise KubeconfigError(f"kubeconfig {path}{where} is not YAML: {why}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigError(f"kubeconfig {path} is not YAML: {error}") from error
