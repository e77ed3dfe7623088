"""Make the input of a credential plugin, and read its answer. Pure.

Source: client-go plugin/pkg/client/auth/exec/exec.go:refreshCredsLocked, rest/exec.go:ConfigToExecCluster.
"""

# check: pure

import base64
from dataclasses import field
from datetime import datetime
from typing import Any

import orjson

from lastcall.kube.client.access.config import ClientConfig, ExecPlugin, InteractiveMode
from lastcall.world.dataclass import dataclass

KIND = "ExecCredential"


@dataclass(frozen=True, slots=True)
class Answer:
    """`expires` is in seconds since the Unix epoch, None for never."""

    token: str = field(default="", repr=False)
    cert_pem: bytes = b""
    key_pem: bytes = field(default=b"", repr=False)
    expires: float | None = None


def takes_terminal(mode: InteractiveMode, is_terminal: bool) -> bool:
    """Return whether the plugin gets the standard input. Raises ValueError."""
    if mode == "Always" and not is_terminal:
        raise ValueError("exec plugin cannot support interactive mode: standard input is not a terminal")
    return mode != "Never" and is_terminal


def request_document(config: ClientConfig, plugin: ExecPlugin, interactive: bool) -> str:
    """Return the JSON in KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        said = {
            "server": config.server,
            "tls-server-name": config.tls_server_name,
            "insecure-skip-tls-verify": config.insecure_skip_tls_verify,
            "certificate-authority-data": base64.b64encode(config.ca_pem).decode(),
            "proxy-url": config.proxy_url,
            "disable-compression": config.disable_compression,
            "config": plugin.config,
        }
        spec["cluster"] = {key: value for key, value in said.items() if value}
    return orjson.dumps({"kind": KIND, "apiVersion": plugin.api_version, "spec": spec}).decode()


def read_answer(output: bytes, api_version: str) -> Answer:
    """Read what the plugin wrote. Raises ValueError, whose text leaves the output out because it may be a secret."""
    try:
        document = orjson.loads(output)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"decoding stdout: it is not JSON (line {error.lineno}, column {error.colno})") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise ValueError(f"decoding stdout: it is not an {KIND}")
    version = document.get("apiVersion")
    if version != api_version:
        raise ValueError(
            f"exec plugin is configured to use API version {api_version}, plugin returned version {_word(version)}"
        )
    status = document.get("status")
    if status is None:
        raise ValueError("exec plugin didn't return a status field")
    if not isinstance(status, dict):
        raise ValueError("decoding stdout: status is not an object")
    token, certificate, key, expires = (
        _text(status, name) for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
    )
    if not token and not certificate and not key:
        raise ValueError("exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise ValueError("exec plugin returned only certificate or key, not both")
    if any(not each.isprintable() for each in token):
        raise ValueError("exec plugin returned a token with control characters")
    return Answer(token, certificate.encode(), key.encode(), _moment(expires) if expires else None)


def _text(status: dict[str, Any], name: str) -> str:
    value = status.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"decoding stdout: status.{name} is not a string")
    return value or ""


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        return moment.timestamp()
    except (ValueError, OverflowError):
        raise ValueError("decoding stdout: status.expirationTimestamp is not a time (2026-01-31T12:00:00Z)") from None


def _word(value: object) -> str:
    return value if isinstance(value, str) and value.isprintable() and len(value) < 100 else "that is not a version"
