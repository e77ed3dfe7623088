"""An API server alone, in a process of its own: TLS on loopback, no controllers, no scheduler, a stand-in kubelet.

    python tests/support/api_process.py --kubeconfig PATH

Pods are bound to the node `stand-in` and are Ready at once; a deleted one ends at once. Runs until it is killed.
"""

import argparse
import asyncio
import os

from api_server import running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import BINDINGS, LEASES, NODES, PODS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.client.api import Client
from lastcall.world.clock import RealClock, now, rfc3339, rfc3339_micro

NODE = "stand-in"
USER = UserInfo("stand-in", ("system:masters",))  # it binds Pods, which no node may do


async def heartbeat(client: Client) -> None:
    """The node lifecycle controller takes a node without a lease for dead."""
    lease = {"metadata": {"name": NODE}, "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40}}
    await client.create(LEASES, lease, "kube-node-lease")
    while True:
        spec = {"spec": {"renewTime": rfc3339_micro(now(RealClock()))}}
        await client.patch(LEASES, NODE, spec, "kube-node-lease")
        await asyncio.sleep(5)  # the interval of the Lease


async def kubelet(client: Client) -> None:
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    await client.create(NODES, {"metadata": {"name": NODE}})
    await client.patch(NODES, NODE, {"status": {"conditions": conditions}}, subresource="status")
    async with client.watch(PODS) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED"):
                try:
                    await step(client, event.object)
                except StatusError as error:
                    if error.reason not in ("Conflict", "NotFound"):
                        raise


async def step(client: Client, pod: Object) -> None:
    name, namespace = name_of(pod), namespace_of(pod)
    if pod["metadata"].get("deletionTimestamp"):
        await client.delete(PODS, name, namespace, grace_period_seconds=0, uid=uid_of(pod))
    elif not pod["spec"].get("nodeName"):
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}}
        await client.create(BINDINGS, body, namespace)
    elif (pod.get("status") or {}).get("phase") == "Pending":
        since = rfc3339(now(RealClock()))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
        status = {"phase": "Running", "conditions": [ready], "podIP": "192.0.2.9", "podIPs": [{"ip": "192.0.2.9"}]}
        await client.patch(PODS, name, {"status": status}, namespace, subresource="status")


async def main(path: str) -> None:
    async with running_server() as running:
        client = running.server.client(USER)
        node = asyncio.gather(kubelet(client), heartbeat(client))
        file = os.open(f"{path}.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.write(file, running.kubeconfig.encode())
        os.close(file)
        os.replace(f"{path}.new", path)
        await node


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    asyncio.run(main(parser.parse_args().kubeconfig))
