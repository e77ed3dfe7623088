"""`rollout --find-safe` in virtual time: real controllers, kubelet and proxy; Pods that end as it was measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lastcall.apiserver.pki import new_key_pem
from lastcall.cli.errors import WorldError
from lastcall.cli.manifests import load_manifests
from lastcall.cli.rollout_options import RolloutOptions
from lastcall.cli.rollout_result import Result
from lastcall.cli.rollout_session import RolloutSession
from lastcall.cli.rollout_target import find_target
from lastcall.cluster.propagation import parse_propagation
from lastcall.cluster.virtual import VirtualRolloutCluster
from lastcall.cluster.virtual_load import Behaviour, KindBehaviour
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


KINDS = dict.fromkeys(("fresh", "keep-alive", "slow", "stream", "websocket", "http2", "tcp"), 50.0)
LASTS = {kind: KindBehaviour(1.0, finished=True) for kind in ("slow", "stream", "websocket", "http2")}
LEAVES_THEM = {kind: replace(each, finished=False) for kind, each in LASTS.items()}
OF_KINDS = [
    ("a lag that the hook outlasts loses none of any kind", "4.9s", Behaviour(0.0, 1.0, kinds=LASTS), set()),
    ("beyond it whatever opens a connection is refused", "6s", Behaviour(0.0, 1.0, kinds=LASTS), set(KINDS)),
    (
        "what is under way when the Pod leaves is lost, and requests on open connections whatever the lag",
        "4.5s",
        Behaviour(0.0, 0.0, kinds=LEAVES_THEM),
        {"slow", "stream", "websocket", "http2"},
    ),
    ("what is over by then is not", "3.9s", Behaviour(0.0, 0.0, kinds={"slow": LEAVES_THEM["slow"]}), set()),
    (
        "an answer that outlasts the grace period of 30 s is killed",
        "4s",
        Behaviour(0.0, 28.0, kinds={"slow": KindBehaviour(28.0, finished=True)}),
        {"slow"},
    ),
]


@pytest.mark.parametrize(("lag", "behaviour", "lost"), [row[1:] for row in OF_KINDS], ids=[row[0] for row in OF_KINDS])
def test_each_kind_of_load_is_lost_in_its_own_way(lag: str, behaviour: Behaviour, lost: set[str]) -> None:
    found = experiment("polite", behaviour, lag, rates=KINDS).account
    assert {kind for kind, count in found.losses.items() if count} == lost
    assert set(found.totals) == set(KINDS) and found.control_lost == 0
    assert {each.cause for each in found.lost} <= {"late endpoint", "cut off", "killed", "stale connection"}


def with_spec(tmp_path: Path, old: str, new: str) -> str:
    text = (EXAMPLES / "polite.yaml").read_text()
    assert old in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(old, new))
    return str(path)


NEVER_READY = [
    (
        "imagePullPolicy: IfNotPresent\n",
        "imagePullPolicy: IfNotPresent\n          resources: {requests: {cpu: 1k}}\n",
        [
            "3 Pods are available",
            "Event FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu",
            "fix: Insufficient cpu: lower resources.requests",
        ],
    ),
    (
        "    spec:\n      containers:\n",
        "    spec:\n      serviceAccountName: nobody\n      containers:\n",
        [
            "Deployment default/polite: 0 of its 3",
            'serviceaccount "nobody" not found',
            "fix: add ServiceAccount nobody to the manifests",
        ],
    ),
]


@pytest.mark.parametrize(("old", "new", "words"), NEVER_READY, ids=["cannot be scheduled", "cannot be created"])
def test_pods_that_never_get_ready_are_named_with_the_reason(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    manifests = load_manifests((with_spec(tmp_path, old, new),))
    options = RolloutOptions(rates={"fresh": 10.0}, timeout=40)
    target = find_target(manifests, options)
    said: list[str] = []

    async def main(world: World) -> None:
        template = target.workload.obj["spec"]["template"]
        async with VirtualRolloutCluster(world, template, LEAVES, options.propagation, KEY) as cluster:
            await RolloutSession(cluster, options, target, world, say=said.append).run(manifests)

    with pytest.raises(WorldError) as error:
        run_virtual(main)
    text = str(error.value)
    assert "waited 40 s (--timeout) in vain until its Pods are Ready" in text
    assert [word for word in words if word not in text] == []
    waited = [line for line in said if line.startswith("still waiting after ")]
    assert len(waited) == 2 and waited[0].startswith(
        "still waiting after 15 s until its Pods are Ready: 0 of 3 Pods are"
    )
