"""`rollout --find-safe` in virtual time: real controllers, kubelet and proxy; Pods that end as it was measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lastcall.apiserver.pki import new_key_pem
from lastcall.cli.manifests import load_manifests
from lastcall.cli.rollout import RolloutOptions
from lastcall.cli.rollout_session import Result, RolloutSession, find_target
from lastcall.cluster.propagation import parse_propagation
from lastcall.cluster.virtual import Behaviour, VirtualRolloutCluster
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "rollout"
KEY = new_key_pem()


def experiment(name: str, behaviour: Behaviour, propagation: str, **changed: Any) -> Result:
    manifests = load_manifests((str(EXAMPLES / f"{name}.yaml"),))
    plan = parse_propagation([propagation])
    options = replace(RolloutOptions(rates={"fresh": 200.0}, propagation=plan), **changed)
    target = find_target(manifests, options)

    async def main(world: World) -> Result:
        template = target.workload.obj["spec"]["template"]
        nodes = 2 if options.disrupt == "drain" else 1
        async with VirtualRolloutCluster(world, template, behaviour, plan, KEY, nodes=nodes) as cluster:
            return await RolloutSession(cluster, options, target, world).run(manifests)

    return run_virtual(main)


LEAVES = Behaviour(accepts=0.0, drains=0.0)
EDGES = [
    ("a hook of 5 s outlasts 4.9 s", "polite", LEAVES, {"propagation": "4.9s"}, True),
    ("and does not outlast 5.1 s", "polite", LEAVES, {"propagation": "5.1s"}, False),
    ("unless the Pod accepts a while longer", "polite", Behaviour(0.5, 1.0), {"propagation": "5.1s"}, True),
    ("a server that leaves at once survives no lag", "naive", LEAVES, {"propagation": "200ms"}, False),
    ("the kernel's hop counts as the watch does", "polite", LEAVES, {"propagation": "watch=3s,kernel=2.1s"}, False),
    (
        "a balancer outside is told late",
        "polite",
        LEAVES,
        {"propagation": "balancer=5.1s", "source": "balancer"},
        False,
    ),
    ("and the node's lag is nothing to it", "polite", LEAVES, {"propagation": "watch=9s", "source": "balancer"}, True),
    ("a drained node's Pods end as others", "polite", LEAVES, {"propagation": "4.9s", "disrupt": "drain"}, True),
]


@pytest.mark.parametrize(("name", "behaviour", "changed", "safe"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
def test_the_edge_is_where_the_hook_and_the_listener_end(
    name: str, behaviour: Behaviour, changed: dict[str, str], safe: bool
) -> None:
    found = experiment(name, behaviour, **changed).account
    assert (found.lost == ()) is safe and found.control_lost == 0 and found.total > 200
    assert all(each.cause == "late endpoint" for each in found.lost)


def test_one_seed_is_one_story() -> None:
    first, second = (experiment("naive", LEAVES, "1s") for _ in range(2))
    assert [each.to_wire() for each in first.outcomes] == [each.to_wire() for each in second.outcomes]
    assert len(first.account.lost) > 50
