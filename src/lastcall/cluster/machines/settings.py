"""How the machines of a cluster are one Pod network, as its ConfigMap tells it. Pure.

host-gw: each machine routes the Pods of another one to its address; all are in one network of layer 2. vxlan: what is
for Pods of another machine goes there inside of UDP; machines only have to reach each other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal, cast

from lastcall.api.meta import Object

Mode = Literal["host-gw", "vxlan"]
MODES: tuple[Mode, ...] = ("host-gw", "vxlan")
NAMESPACE = "kube-system"
CONFIG_MAP = "lastcall-pod-network"
PORT = 4789
"""Of UDP: IANA's number for VXLAN."""
OVERHEAD = 50
"""Bytes that VXLAN adds: Ethernet, IPv4, UDP and its own header."""
_LEAST_MTU = 576


class SettingsError(ValueError):
    """A ConfigMap that cannot be understood; names the field."""


@dataclass(frozen=True, slots=True)
class PodNetwork:
    """`cluster_cidr` has all Pods. `vni` and `port` are VXLAN's. `mtu` is that of Pods, the same on every machine."""

    mode: Mode
    cluster_cidr: str
    mtu: int
    vni: int = 0
    port: int = PORT


def vni_of(ca_certificate: bytes) -> int:
    """A VXLAN network identifier that other clusters on the same machines do not have."""
    return int.from_bytes(hashlib.sha256(ca_certificate).digest()[:3]) or 1


def to_config_map(network: PodNetwork) -> Object:
    data = {
        "mode": network.mode,
        "clusterCIDR": network.cluster_cidr,
        "mtu": str(network.mtu),
        "vni": str(network.vni),
        "port": str(network.port),
    }
    return {"metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE}, "data": data}


def from_config_map(config_map: Mapping[str, object]) -> PodNetwork:
    """Raises SettingsError."""
    data = cast("dict[str, str]", config_map.get("data") or {})
    mode = data.get("mode", "")
    if mode not in MODES:
        raise SettingsError(f"mode {mode!r}: is not one of {', '.join(MODES)}")
    cidr = data.get("clusterCIDR", "")
    try:
        IPv4Network(cidr)
    except ValueError:
        raise SettingsError(f"clusterCIDR {cidr!r}: is not an IPv4 network") from None
    vxlan = mode == "vxlan"
    return PodNetwork(
        mode,
        cidr,
        _number(data, "mtu", _LEAST_MTU, 65535),
        _number(data, "vni", 1, (1 << 24) - 1) if vxlan else 0,
        _number(data, "port", 1, 65535) if vxlan else PORT,
    )


def _number(data: Mapping[str, str], key: str, least: int, most: int) -> int:
    text = data.get(key, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise SettingsError(f"{key} {text!r}: is not a number from {least} to {most}")
    return int(text)
