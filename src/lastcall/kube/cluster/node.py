"""The node's role: a container runtime, the kubelet on it, and the services of a node."""

import asyncio

import uvloop

from lastcall.kube.cluster.control.node import NodeControlServer
from lastcall.kube.cluster.health.guards import install_guards
from lastcall.kube.cluster.nodes.context import make_context
from lastcall.kube.cluster.nodes.kubelet import node_kubelet, shut_down_on_sigterm, start_kubelet
from lastcall.kube.cluster.nodes.runtime import node_runtime
from lastcall.kube.cluster.nodes.services import services
from lastcall.kube.cluster.plan import NodePlan, Plan
from lastcall.kube.cluster.published.carrier import Carrier
from lastcall.world import crash_guard
from lastcall.world.listeners import allow_most_connections
from lastcall.world.start_code import AFTER_SECONDS, give_back_start_code
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


def main(plan: Plan, node: NodePlan) -> None:
    """Run until killed."""
    allow_most_connections()
    uvloop.run(_run(plan, node))


async def _run(plan: Plan, node: NodePlan) -> None:
    heart = plan.hearts[node.layout.name]
    heart.start(asyncio.get_running_loop())
    context = make_context(plan, node)
    world = context.world
    install_guards(node.layout.name, context.recorder)
    engine = await node_runtime(context)
    async with Tasks() as tasks:
        own = node_kubelet(context, engine, tasks)
        start_kubelet(context, engine, own, tasks)
        await own.kubelet.wait_ready()
        heart.as_usual()
        await own.status.register()
        tasks.spawn(_settle(world), name="settle")
        for name, run in (("node status", own.status.run), *services(context, engine.gate, own.client)):
            tasks.spawn(crash_guard.keep_running(name, run, world.clock), name=name)
        context.way_out.take_connections(Carrier(tasks).take)
        NodeControlServer(node.control_node, own.kubelet.shutdown, tasks).start()
        tasks.spawn(shut_down_on_sigterm(world, own.kubelet, tasks), name="SIGTERM")


async def _settle(world: World) -> None:
    await world.clock.sleep(AFTER_SECONDS)
    give_back_start_code()
