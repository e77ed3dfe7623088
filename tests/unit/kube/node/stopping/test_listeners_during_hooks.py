"""A listener that closes while a preStop hook runs is told, with the two looks that it closed between."""

from typing import Any

import pytest
from node_world import Node, container, exec_hook, on_node, pre_stop

from lastcall.kube.cri.api import TCPListener
from lastcall.kube.cri.simulated_program import ExecResult, Listener, Program

SERVES = Program(on_term="exit", ports={8080: Listener(), 9090: Listener()}, execs={"quit": ExecResult(seconds=3)})
ADDRESS = "10.244.0.2"


def closings(hook: dict[str, Any], open_ports: Any, program: Program = SERVES) -> list[dict[str, Any]]:
    """Delete a Pod with the hook; `open_ports(seconds since Killing)` is what its runtime says then."""

    async def scenario(node: Node) -> Node:
        node.create(terminationGracePeriodSeconds=30, containers=[container(**pre_stop(hook))])
        await node.until_running()

        async def listeners(_: str) -> tuple[TCPListener, ...] | None:
            killing = node.events.of("Killing")
            ports = open_ports(node.world.clock.monotonic_ns() / 1e9 - killing[0]["at"] if killing else 0.0)
            return None if ports is None else tuple(TCPListener(ADDRESS, each) for each in ports)

        node.runtime.listeners = listeners
        node.delete()
        await node.until(lambda: node.records("WorkerFinished"))
        return node

    node = on_node(scenario, {"app": program})
    return [record["facts"] for record in node.records("ListenerClosedInHook")]


def test_a_port_that_closes_while_the_hook_runs_is_told_between_two_looks() -> None:
    (closed,) = closings(exec_hook("quit"), lambda at: (8080, 9090) if at < 1.0 else (9090,))
    assert (closed["port"], closed["address"]) == (8080, ADDRESS)
    assert closed["notBefore"] < 1.0 <= closed["seconds"] < closed["notBefore"] + 0.2


@pytest.mark.parametrize(
    ("hook", "open_ports"),
    [
        pytest.param(exec_hook("quit"), lambda at: (8080,), id="it stays open"),
        pytest.param(exec_hook("quit"), lambda at: None, id="the runtime does not know"),
        pytest.param(exec_hook("quit"), lambda at: (8080,) if at < 1.0 else None, id="its container has ended"),
        pytest.param(exec_hook("quit"), lambda at: (), id="it never listened"),
        pytest.param({"sleep": {"seconds": 3}}, lambda at: (8080,) if at < 1.0 else (), id="a hook that only sleeps"),
    ],
)
def test_nothing_is_told_where_no_hook_is_known_to_have_closed_a_port(hook: dict[str, Any], open_ports: Any) -> None:
    assert closings(hook, open_ports) == []
