"""From `SERVER --token --discovery-token-ca-cert-hash` to a configuration that trusts the right authority.

The ConfigMap kube-public/cluster-info is asked of whoever answers; it counts when it is signed with the token, and when
its authority is the one of which the user has the hash. Source: kubeadm cmd/kubeadm/app/discovery/token/token.go.
"""

import base64
import hmac
from collections.abc import Iterable, Mapping

import yaml
from cryptography import x509

from lastcall.api.errors import StatusError
from lastcall.api.meta import Object
from lastcall.api.resources import CONFIGMAPS
from lastcall.api.text.bootstrap_tokens import SIGNATURE, Token, detached_signature
from lastcall.apiserver.auth.pki import HASH_PREFIX, hash_of
from lastcall.client.access.config import ClientConfig
from lastcall.client.kubeconfig import client_for


class DiscoveryError(Exception):
    """The server is not what the token and the hash say. The text says the fix."""


def checked_hashes(hashes: Iterable[str]) -> tuple[str, ...]:
    """In lower case. Raises ValueError."""
    found = []
    for text in hashes:
        digest = text.removeprefix(HASH_PREFIX).lower()
        if not text.startswith(HASH_PREFIX) or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise ValueError(f"{text!r} is not sha256: and 64 hexadecimal digits")
        found.append(HASH_PREFIX + digest)
    return tuple(found)


def authority_of(data: Mapping[str, str], token: Token, hashes: Iterable[str]) -> bytes:
    """The authority (PEM) of a cluster-info; no `hashes`: any that the token has signed. Raises DiscoveryError."""
    kubeconfig = data.get("kubeconfig") or ""
    signature = data.get(SIGNATURE + token.id)
    if not signature:
        raise DiscoveryError(
            f"the cluster does not know token {token.id}: kube-public/cluster-info has no signature of it; "
            "fix: make a new token (kubeadm token create --print-join-command)"
        )
    if not hmac.compare_digest(detached_signature(kubeconfig, token).encode(), signature.encode()):
        raise DiscoveryError(f"kube-public/cluster-info is signed with another secret than that of token {token.id}")
    try:
        text = yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["certificate-authority-data"]
        pem = base64.b64decode(text)
        certificates = x509.load_pem_x509_certificates(pem)
    except (yaml.YAMLError, KeyError, IndexError, TypeError, ValueError) as error:
        raise DiscoveryError(f"kube-public/cluster-info has no certificate authority ({error})") from None
    wanted = set(hashes)
    if wanted and not wanted & {hash_of(each) for each in certificates}:
        have = ", ".join(hash_of(each) for each in certificates)
        raise DiscoveryError(
            f"the cluster's authority is {have}, not {', '.join(sorted(wanted))}: another cluster answers, or "
            "--discovery-token-ca-cert-hash is wrong"
        )
    return pem


async def discover(server: str, token: Token, hashes: Iterable[str]) -> ClientConfig:
    """A configuration with the token. Raises DiscoveryError, StatusError, ConnectionLost."""
    hashes = tuple(hashes)
    untrusted = ClientConfig(server, insecure_skip_tls_verify=True)
    pem = authority_of(_data(await _cluster_info(untrusted)), token, hashes)
    trusted = ClientConfig(server, ca_pem=pem)
    if authority_of(_data(await _cluster_info(trusted)), token, hashes) != pem:
        raise DiscoveryError("kube-public/cluster-info says something else on the second look; fix: try again")
    return ClientConfig(server, ca_pem=pem, token=str(token))


async def _cluster_info(config: ClientConfig) -> Object:
    client = client_for(config)
    try:
        return await client.get(CONFIGMAPS, "cluster-info", "kube-public")
    except StatusError as error:
        raise DiscoveryError(
            f"{config.server} does not tell its ConfigMap kube-public/cluster-info ({error.message}); "
            "fix: --bootstrap-kubeconfig FILE, with the authority in it"
        ) from error
    finally:
        await client.close()


def _data(config_map: Object) -> Mapping[str, str]:
    return config_map.get("data") or {}
