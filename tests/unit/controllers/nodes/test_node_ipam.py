"""node-ipam-controller: where ranges come from when the process stands alone, and what it says when there are none."""

import pytest
from fake_api import FakeAPI

from lastcall.api.meta import Object
from lastcall.api.resources import EVENTS, NODES
from lastcall.cli.clusters.controller_manager import checked_node_ranges, chosen_controllers
from lastcall.cli.errors import UserError
from lastcall.controllers.manager import run_controllers
from lastcall.controllers.nodes.ipam.controller import NAME
from lastcall.controllers.nodes.ipam.ranges import NodeRanges
from lastcall.timeline.memory import NoRecorder
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def test_it_runs_where_ranges_are_given_and_is_not_there_else() -> None:
    assert NAME in chosen_controllers("*", node_ipam=True)
    assert NAME not in chosen_controllers("*")
    assert NAME not in chosen_controllers(f"*,-{NAME}", node_ipam=True)
    with pytest.raises(UserError, match="fix: add --allocate-node-cidrs and --cluster-cidr NETWORK"):
        chosen_controllers(f"*,{NAME}")


@pytest.mark.parametrize(
    ("allocate", "cidr", "mask", "told"),
    [
        (False, "10.0.0.0/8", 24, "--cluster-cidr is for --allocate-node-cidrs"),
        (True, "", 24, "fix: add --cluster-cidr NETWORK"),
        (True, "x", 24, "'x' is not an IPv4 network"),
        (True, "10.244.0.0/16", 12, "does not divide"),
    ],
)
def test_flags_that_make_no_ranges_are_refused(allocate: bool, cidr: str, mask: int, told: str) -> None:
    with pytest.raises(UserError, match=told):
        checked_node_ranges(allocate, cidr, mask)


def test_flags_that_make_ranges() -> None:
    assert checked_node_ranges(False, "", 24) is None
    assert checked_node_ranges(True, "10.0.0.0/16", 26) == NodeRanges("10.0.0.0/16", 26)


def node(name: str, cidr: str = "") -> Object:
    return {"metadata": {"name": name}, "spec": {"podCIDR": cidr, "podCIDRs": [cidr]} if cidr else {}}


def test_a_node_for_which_none_is_left_is_told_so_and_gets_the_next_that_is_free() -> None:
    async def main(world: World) -> None:
        api = FakeAPI(world)
        for made in (node("a", "10.0.0.0/25"), node("b", "10.0.0.128/25"), node("c")):
            api.put(NODES, made)

        def cidr() -> str:
            return next(each["spec"].get("podCIDR", "") for each in api.of(NODES) if each["metadata"]["name"] == "c")

        def said() -> set[str]:
            return {each["message"] for each in api.of(EVENTS) if each["reason"] == "CIDRNotAvailable"}

        async with Tasks() as tasks:
            ranges = NodeRanges("10.0.0.0/24", 25)
            controllers = run_controllers(
                world=world, client=api, recorder_for=lambda _: NoRecorder(), root_ca_pem=b"ca", names=(NAME,),
                node_ranges=ranges,
            )  # fmt: skip
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(30)
            assert said() == {"Node c status is now: CIDRNotAvailable"}
            assert cidr() == ""
            await api.delete(NODES, "b")
            await world.clock.sleep(30)
            assert cidr() == "10.0.0.128/25"
            tasks.cancel()

    run_virtual(main)
