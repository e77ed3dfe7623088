"""A machine whose kubelet is not lastcall's: routes to the Pods of other machines, and its Pods' CNI configuration."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lastcall.api.errors import StatusError, is_not_found
from lastcall.api.resources import CONFIGMAPS, NODES
from lastcall.client.api import Client
from lastcall.cluster.machines.agent import MachineAgent
from lastcall.cluster.machines.kernel import Kernel, mtu_for
from lastcall.cluster.machines.rules import ipv4_pod_cidrs, machine_of
from lastcall.cluster.machines.settings import CONFIG_MAP, NAMESPACE, PodNetwork, from_config_map
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.api.types.node import Node

CONFIGURATION = "10-lastcall.conflist"
_AGAIN_SECONDS = 1.0
NOT_FOUND = "the cluster has no Pod network of several machines; fix: start it with lastcall up --pod-network"


class NoPodNetwork(Exception):
    """The cluster has no Pod network of several machines."""


async def follow(world: World, client: Client, name: str, cni_conf_dir: str, say: Callable[[str], None]) -> None:
    """For the node `name`, until cancelled. `cni_conf_dir` "" leaves the configuration to others.

    Raises NoPodNetwork, SettingsError, StatusError, ConnectionLost, OSError.
    """
    settings = await _settings(client)
    address, ranges = await _wait_for_node(world, client, name, say)
    mtu = mtu_for(settings.mode, address)
    if mtu < settings.mtu:
        say(f"packets of {settings.mtu} bytes do not fit through the link of {address}, which takes {mtu}")
    kernel = Kernel(settings, address)
    agent = MachineAgent(world, client, kernel, address, settings.cluster_cidr, say)
    written = _write(cni_conf_dir, cni_configuration(settings, ranges)) if cni_conf_dir else None
    say(f"node {name}: Pods {', '.join(ranges)} at {address}, {settings.mode}")
    try:
        await agent.run()
    finally:
        kernel.close()
        if written is not None:
            with suppress(OSError):
                written.unlink()


def cni_configuration(settings: PodNetwork, ranges: list[str]) -> str:
    """ptp in place of a bridge: Services between Pods of one machine work without br_netfilter."""
    connect = {
        "type": "ptp",
        "mtu": settings.mtu,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": each}] for each in ranges],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "lastcall", "plugins": [connect, ports]}, indent=2) + "\n"


async def _settings(client: Client) -> PodNetwork:
    try:
        return from_config_map(await client.get(CONFIGMAPS, CONFIG_MAP, NAMESPACE))
    except StatusError as error:
        if is_not_found(error):
            raise NoPodNetwork(NOT_FOUND) from None
        raise


async def _wait_for_node(world: World, client: Client, name: str, say: Callable[[str], None]) -> tuple[str, list[str]]:
    """Its machine's address and its Pods' ranges."""
    told = ""
    while True:
        try:
            node = cast("Node", await client.get(NODES, name))
        except StatusError as error:
            if not is_not_found(error):
                raise
            why = f"waits for the Node {name}"
        else:
            address, ranges = machine_of(node), ipv4_pod_cidrs(node)
            if address and ranges:
                return address, ranges
            why = f"waits for {'spec.podCIDR' if address else 'an InternalIP'} of the Node {name}"
        if why != told:
            say(why)
            told = why
        await world.clock.sleep(_AGAIN_SECONDS)


def _write(directory: str, text: str) -> Path:
    """Whoever reads the directory never sees a part of it."""
    path = Path(directory) / CONFIGURATION
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)
    return path
