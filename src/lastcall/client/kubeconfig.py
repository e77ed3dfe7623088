"""kubeconfig files: read one to make a client, write one for kubectl.

Source: client-go tools/clientcmd (loader.go: KUBECONFIG is a list of files and the first value wins; paths inside a
file are relative to it). Certificates and keys given as data never touch a disk.
"""

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from lastcall.client.http import HTTPClient


class KubeconfigError(Exception):
    """The kubeconfig cannot be used; the text names file, field and the fix."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """What one context says. PEM texts are bytes, empty when not given; `namespace` "" is not given."""

    server: str
    namespace: str = ""
    ca_pem: bytes = b""
    cert_pem: bytes = b""
    key_pem: bytes = b""
    token: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False


def kubeconfig_paths(explicit: str = "", environ: Mapping[str, str] | None = None) -> list[Path]:
    """The files to read: the explicit one, else those of $KUBECONFIG, else ~/.kube/config."""
    if explicit:
        return [Path(explicit)]
    env = os.environ if environ is None else environ
    listed = [part for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return [Path(part) for part in dict.fromkeys(listed)]
    return [Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"]


def load_kubeconfig(path: str = "", context: str = "", *, environ: Mapping[str, str] | None = None) -> ClientConfig:
    """Read the files of `kubeconfig_paths` and resolve `context` ("" is current-context). Raises KubeconfigError."""
    paths = kubeconfig_paths(path, environ)
    files = [(file, _read_file(file)) for file in paths if path or file.exists()]
    if not files:
        where = ", ".join(map(str, paths))
        raise KubeconfigError(f"no kubeconfig found at {where}: set KUBECONFIG or name a file")
    name = context or next((str(data["current-context"]) for _, data in files if data.get("current-context")), "")
    if not name:
        raise KubeconfigError(f"{files[0][0]}: current-context is not set: name a context")
    _, chosen = _entry(files, "contexts", "context", name)
    cluster_file, cluster = _entry(files, "clusters", "cluster", str(chosen.get("cluster") or ""))
    user_name = str(chosen.get("user") or "")
    user_file, user = _entry(files, "users", "user", user_name) if user_name else (cluster_file, {})
    for field in ("exec", "auth-provider", "username", "password"):
        if user.get(field):
            raise KubeconfigError(
                f"{user_file}: users[{user_name}].{field} is not supported: use a token or a client certificate"
            )
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith(("https://", "http://")):
        raise KubeconfigError(
            f"{cluster_file}: clusters[{chosen.get('cluster')}].server is {server!r}: must be a URL, https://host:port"
        )
    if cluster.get("proxy-url"):
        raise KubeconfigError(f"{cluster_file}: clusters[{chosen.get('cluster')}].proxy-url is not supported")
    token = str(user.get("token") or "")
    if not token and user.get("tokenFile"):
        token = _file_bytes(user_file, "tokenFile", str(user["tokenFile"])).decode().strip()
    certificate = _pem(user_file, user, "client-certificate")
    key = _pem(user_file, user, "client-key")
    if bool(certificate) != bool(key):
        raise KubeconfigError(f"{user_file}: users[{user_name}] needs both client-certificate and client-key, or none")
    return ClientConfig(
        server=server,
        namespace=str(chosen.get("namespace") or ""),
        ca_pem=_pem(cluster_file, cluster, "certificate-authority"),
        cert_pem=certificate,
        key_pem=key,
        token=token,
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        insecure_skip_tls_verify=bool(cluster.get("insecure-skip-tls-verify")),
    )


def make_ssl_context(
    *, ca_pem: bytes = b"", cert_pem: bytes = b"", key_pem: bytes = b"", insecure_skip_tls_verify: bool = False
) -> ssl.SSLContext:
    """A client context that trusts `ca_pem` (the system's authorities when empty). Raises KubeconfigError."""
    try:
        context = ssl.create_default_context(cadata=ca_pem.decode("ascii") if ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise KubeconfigError(f"certificate-authority is not a PEM certificate: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert_pem:
        # The ssl module reads certificates from files only; a memfd is a file that is on no disk.
        fd = os.memfd_create("lastcall-client", os.MFD_CLOEXEC)
        try:
            with open(fd, "wb", closefd=False) as file:
                file.write(cert_pem.rstrip() + b"\n" + key_pem)
            context.load_cert_chain(f"/proc/self/fd/{fd}")
        except (ssl.SSLError, OSError) as error:
            raise KubeconfigError(f"client-certificate and client-key do not fit or are not PEM: {error}") from error
        finally:
            os.close(fd)
    return context


def client_for(config: ClientConfig, **options: Any) -> HTTPClient:
    """An HTTPClient for `config`; `options` go to HTTPClient (user_agent, request_timeout)."""
    context = None
    if config.server.startswith("https://"):
        context = make_ssl_context(
            ca_pem=config.ca_pem,
            cert_pem=config.cert_pem,
            key_pem=config.key_pem,
            insecure_skip_tls_verify=config.insecure_skip_tls_verify,
        )
    return HTTPClient(
        config.server,
        ssl_context=context,
        token=config.token,
        tls_server_name=config.tls_server_name,
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
    """A kubeconfig with one cluster, user and context of that `name`, as YAML. It holds secrets: write it with 0600."""
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


def _read_file(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"cannot read kubeconfig {path}: {error}") from error
    except yaml.YAMLError as error:
        raise KubeconfigError(f"kubeconfig {path} is not YAML: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise KubeconfigError(f"kubeconfig {path}: the document must be a mapping, not {type(data).__name__}")
    return data


def _entry(
    files: list[tuple[Path, dict[str, Any]]], collection: str, field: str, name: str
) -> tuple[Path, dict[str, Any]]:
    known: dict[str, None] = {}
    for path, data in files:
        entries = data.get(collection) or []
        if not isinstance(entries, list):
            raise KubeconfigError(f"{path}: {collection} must be a list")
        for entry in entries:
            if not isinstance(entry, dict):
                raise KubeconfigError(f"{path}: {collection} has an entry that is not a mapping")
            known[str(entry.get("name"))] = None
            if entry.get("name") == name:
                value = entry.get(field) or {}
                if not isinstance(value, dict):
                    raise KubeconfigError(f"{path}: {collection}[{name}].{field} must be a mapping")
                return path, cast(dict[str, Any], value)
    raise KubeconfigError(f"{files[0][0]}: {field} {name!r} does not exist; there are: {', '.join(known) or 'none'}")


def _pem(path: Path, entry: dict[str, Any], field: str) -> bytes:
    """`<field>-data` (base64) wins over `<field>` (a path)."""
    data = entry.get(f"{field}-data")
    if data:
        try:
            return base64.b64decode(str(data), validate=False)
        except (binascii.Error, ValueError) as error:
            raise KubeconfigError(f"{path}: {field}-data is not base64: {error}") from error
    return _file_bytes(path, field, str(entry[field])) if entry.get(field) else b""


def _file_bytes(kubeconfig: Path, field: str, name: str) -> bytes:
    file = kubeconfig.parent / name
    try:
        return file.read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{kubeconfig}: {field} {name!r} cannot be read: {error}") from error
