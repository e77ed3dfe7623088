"""The service proxies of a virtual cluster's nodes: the real ones, with a sink that records."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from virtual_cluster import VirtualCluster

from lastcall.kube.client.events import EventRecorder
from lastcall.kube.proxy.propagation import Propagation
from lastcall.kube.proxy.proxier import Proxier, ProxyConfig
from lastcall.kube.proxy.sink import RecordingSink
from lastcall.kube.proxy.topology import Node
from lastcall.world.tasks import Tasks


@asynccontextmanager
async def proxies(
    cluster: VirtualCluster, propagation: Callable[[str], Propagation] = lambda node: Propagation()
) -> AsyncIterator[dict[str, RecordingSink]]:
    """Runs one on each node while the block runs; node → what its kernel would go by."""
    sinks = {name: RecordingSink() for name in cluster.nodes}
    async with Tasks() as tasks:
        for number, (name, sink) in enumerate(sinks.items(), 2):
            node = Node(name, addresses=(f"172.18.0.{number}",))
            proxy = Proxier(
                world=cluster.world,
                client=cluster.client,
                recorder=cluster.recorder.for_actor("kube-proxy"),
                sink=sink,
                events=EventRecorder(cluster.client, cluster.world, "kube-proxy", name),
                config=ProxyConfig(node, "10.244.0.0/16", "10.96.0.0/16"),
                propagation=propagation(name),
            )
            tasks.spawn(proxy.run(), name=f"service proxy of {name}")
        yield sinks
        tasks.cancel()
