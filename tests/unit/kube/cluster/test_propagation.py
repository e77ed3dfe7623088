"""`--propagation`: what is written, and how long each hop takes then."""

from random import Random

import pytest

from lastcall.kube.cluster.propagation import HOPS, PROFILES, parse_propagation
from lastcall.world.delays import parse_delay

RANDOM = Random(1)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("1s", 1, 1),
        ("250ms", 0.25, 0.25),
        ("1.5", 1.5, 1.5),
        ("uniform(0s, 3s)", 0, 3),
        ("normal(1s,100ms)", 0, 2),
        ("exponential(100ms)", 0, 5),
        ("poll(10s)", 0, 10),
    ],
)
def test_a_delay_is_drawn_within_its_bounds(text: str, low: float, high: float) -> None:
    delay = parse_delay(text)
    drawn = [delay.seconds(RANDOM, now=index * 1.7) for index in range(300)]
    assert low <= min(drawn) and max(drawn) <= high and delay.text == text.strip()
    assert delay.most <= high or text.startswith(("normal", "exponential"))
    assert (low == high) == (len(set(drawn)) == 1)


def test_who_polls_sees_a_change_at_its_next_look() -> None:
    delay = parse_delay("poll(10s)")
    assert [delay.seconds(RANDOM, now) for now in (100.0, 101.0, 109.5)] == [10.0, 9.0, 0.5]


@pytest.mark.parametrize("text", ["", "soon", "-1s", "uniform(3s,1s)", "uniform(1s)", "gamma(1s)", "poll(0s)", "4000s"])
def test_what_is_no_delay_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(ValueError, match="write "):
        parse_delay(text)


def test_a_bare_time_is_that_of_all_who_read_endpoint_slices() -> None:
    plan = parse_propagation(["1s"])
    assert {hop: plan.of(hop).most for hop in HOPS} == {"controller": 0, "watch": 1, "kernel": 0, "balancer": 1}
    assert plan.most == 1
    assert parse_propagation(["balancer=5s,1s"]).of("balancer").most == 5


def test_how_late_a_request_s_sender_is_told_depends_on_where_it_is() -> None:
    plan = parse_propagation(["cloud-load-balancer", "controller=1s", "node-2:watch=3s"])
    assert (plan.most_to("node"), plan.most_to("pod"), plan.most_to("balancer"), plan.most) == (5, 5, 25, 25)


def test_hops_nodes_and_profiles_add_up() -> None:
    plan = parse_propagation(["kube-proxy", "watch=uniform(0s,2s),balancer=5s", "node-2:watch=3s", "controller=100ms"])
    assert plan.of("kernel", "node-1").text == PROFILES["kube-proxy"].removeprefix("kernel=")
    assert (plan.of("watch", "node-1").most, plan.of("watch", "node-2").most) == (2, 3)
    assert (plan.of("balancer").most, plan.most) == (5, 5.1)
    assert plan.text.startswith("kube-proxy, watch=")


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_can_be_read(name: str) -> None:
    assert parse_propagation([name]).most > 0


@pytest.mark.parametrize(
    ("text", "why"), [("wire=1s", "'wire' is not a hop: controller, watch"), ("kube-prox", "or a profile: kube-proxy")]
)
def test_what_is_neither_hop_nor_profile_is_named(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_propagation([text])
