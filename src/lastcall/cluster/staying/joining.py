"""`lastcall up --join-token`: what a kubelet needs that is not lastcall's, made as kubeadm makes it.

A bootstrap token (24 hours), the rights of those who show one, and the ConfigMap cluster-info. The token is told once;
it is also in a kubeconfig (0600) that is gone with the cluster, and in its Secret.

Source: cmd/kubeadm/app/phases/bootstraptoken/{node,clusterinfo}.
"""

import secrets
import string
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import yaml
from cryptography import x509

from lastcall.api.errors import StatusError, is_already_exists
from lastcall.api.meta import Object
from lastcall.api.resources import CLUSTERROLEBINDINGS, CONFIGMAPS, ROLEBINDINGS, ROLES, SECRETS, Resource
from lastcall.api.text import bootstrap_tokens as tokens
from lastcall.apiserver.auth.pki import hash_of
from lastcall.client.api import Client
from lastcall.client.kubeconfig import render_kubeconfig
from lastcall.cluster.machines.objects import delete
from lastcall.world.clock import Clock, now, rfc3339

BOOTSTRAP_KUBECONFIG = "bootstrap-kubeconfig"
"""Its name in the cluster's directory."""
GOOD_FOR = timedelta(hours=24)
RENEWAL = "kubeadm:node-autoapprove-certificate-rotation"
JOINERS = "system:bootstrappers:kubeadm:default-node-token"
_CHARACTERS = string.ascii_lowercase + string.digits
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Invitation:
    """`kubeconfig` is for `kubelet --bootstrap-kubeconfig`; it and `token` are secrets. `expires` is RFC 3339.
    `ca_hash` is that of the public key of the cluster's authority, for `--discovery-token-ca-cert-hash`."""

    token: str
    kubeconfig: str
    expires: str
    ca_hash: str


def new_token() -> tokens.Token:
    """A fresh one, of the system's random numbers."""
    return tokens.Token(*("".join(secrets.choice(_CHARACTERS) for _ in range(count)) for count in (6, 16)))


async def invite(client: Client, clock: Clock, name: str, server: str, ca: bytes) -> Invitation:
    """Make a token, and what it needs where that is missing. `server` is the API server's URL as kubelets reach it.

    Raises StatusError.
    """
    for resource, obj in _rights():
        await _create_missing(client, resource, obj)
    await _keep_cluster_info(client, server, ca)
    token, expires = new_token(), rfc3339(now(clock) + GOOD_FOR)
    await client.create(SECRETS, tokens.secret_of(token, expires, JOINERS), tokens.NAMESPACE)
    kubeconfig = render_kubeconfig(name, server, ca, token=str(token))
    return Invitation(str(token), kubeconfig, expires, hash_of(x509.load_pem_x509_certificate(ca)))


async def withdraw(client: Client) -> bool:
    """What an earlier start made for kubelets that join: rights, tokens, cluster-info. Whether there was anything.

    Nodes that have joined stay: they have certificates of their own, and may renew them. Raises StatusError,
    ConnectionLost.
    """
    there = await delete(client, CONFIGMAPS, "cluster-info", "kube-public")
    for resource, obj in _rights():
        if obj["metadata"]["name"] != RENEWAL:
            there |= await delete(client, resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))
    for secret in (await client.list(SECRETS, tokens.NAMESPACE, field_selector=f"type={tokens.SECRET_TYPE}")).items:
        there |= await delete(client, SECRETS, secret["metadata"]["name"], tokens.NAMESPACE)
    return there


async def _create_missing(client: Client, resource: Resource, obj: Object) -> None:
    try:
        await client.create(resource, obj, obj["metadata"].get("namespace", ""))
    except StatusError as error:
        if not is_already_exists(error):
            raise


async def _keep_cluster_info(client: Client, server: str, ca: bytes) -> None:
    found = yaml.safe_load(render_kubeconfig("", server, ca))
    content = {**found, "users": [], "contexts": [], "current-context": ""}
    text = yaml.safe_dump(content, sort_keys=False)
    wanted = {"metadata": {"name": "cluster-info", "namespace": "kube-public"}, "data": {"kubeconfig": text}}
    try:
        await client.create(CONFIGMAPS, wanted, "kube-public")
    except StatusError as error:
        if not is_already_exists(error):
            raise
        kept = await client.get(CONFIGMAPS, "cluster-info", "kube-public")
        await client.update(
            CONFIGMAPS, {**kept, "data": {**(kept.get("data") or {}), "kubeconfig": text}}, "kube-public"
        )


def _rights() -> Iterator[tuple[Resource, Object]]:
    """Who shows a token may ask for a kubelet's certificate and gets it, a node may renew its own, and anybody may read
    cluster-info."""
    signed = "system:certificates.k8s.io:certificatesigningrequests"
    for name, role, group in (
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", JOINERS),
        ("kubeadm:node-autoapprove-bootstrap", f"{signed}:nodeclient", JOINERS),
        (RENEWAL, f"{signed}:selfnodeclient", "system:nodes"),
    ):
        yield (
            CLUSTERROLEBINDINGS,
            {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
            },
        )
    meta = {"name": "kubeadm:bootstrap-signer-clusterinfo", "namespace": "kube-public"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}
    yield ROLES, {"metadata": meta, "rules": [rule]}
    yield (
        ROLEBINDINGS,
        {
            "metadata": meta,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": meta["name"]},
            "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": "system:anonymous"}],
        },
    )
