"""The agent of a node in virtual time: what it follows, what it writes, whom it lets wait."""

import re
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder
from node_world import ListEvents
from rule_kernel import Kernel

from lastcall.kube.api.resources import NAMESPACES, NETWORKPOLICIES, PODS
from lastcall.kube.nftables.objects import Transaction
from lastcall.kube.proxy.policies.agent import PolicyAgent, PolicyConfig
from lastcall.kube.proxy.policies.first_policy import AttachedPod, first_policy
from lastcall.kube.proxy.policies.policy import PolicyPod
from lastcall.kube.proxy.policies.table import Alias
from lastcall.kube.proxy.sink import RuleError
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

DNS = PolicyPod("kube-system", "coredns", "10.96.0.10", {"k8s-app": "kube-dns"}, (("dns", "UDP", 53),))
CONFIG = PolicyConfig("node-1", Alias(("10.96.0.1", 443), ("172.18.0.1", 6443)), DNS)
CLOSED = {"metadata": {"name": "closed", "namespace": "default"}, "spec": {"podSelector": {}}}


def pod(name: str, ip: str, node: str = "node-1", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "c", "ports": [{"name": "web", "containerPort": 80}]}]},
        "status": {"podIP": ip, "phase": "Running"} if ip else {},
    }


class Sink:
    def __init__(self) -> None:
        self.kernel = Kernel()
        self.applied = 0
        self.removed = 0
        self.refusals = 0
        self.tried = 0
        self.pause: Callable[[], Awaitable[None]] | None = None
        self.refuse: Callable[[Transaction], Exception | None] = lambda transaction: None

    async def apply(self, transaction: Transaction) -> None:
        self.tried += 1
        if self.pause is not None:
            await self.pause()
        if self.refusals:
            self.refusals -= 1
            raise RuleError("no memory")
        if error := self.refuse(transaction):
            raise error
        self.kernel.apply(transaction)
        self.applied += 1

    async def remove(self) -> None:
        self.kernel = Kernel()
        self.removed += 1

    def isolated(self, direction: str = "ingress") -> list[str]:
        return sorted(str(key[0]) for key in self.kernel.sets.get(f"isolated-{direction}", ()))

    def rules_about(self, address: str) -> list[str]:
        """The rules for what a Pod receives, without the hashes in the names of sets."""
        chain = str(self.kernel.sets["isolated-ingress"][address,]).removeprefix("jump ")
        return [re.sub("(@[a-z]+)-[0-9a-f]+", r"\1", rule) for rule in self.kernel.chains[chain]]

    def peers(self) -> list[str]:
        return sorted(str(k[0]) for name, s in self.kernel.sets.items() if name.startswith("pods-") for k in s)


class Place:
    def __init__(self, world: World) -> None:
        self.world = world
        self.api = FakeAPI(world)
        self.sink = Sink()
        self.attached: dict[str, AttachedPod] = {}
        self.recorder = ListRecorder(world)
        self.api.put(NAMESPACES, {"metadata": {"name": "default", "labels": {"team": "a"}}})
        self.events = ListEvents(world)
        self.agent = PolicyAgent(
            world=world,
            client=self.api,
            sink=self.sink,
            config=CONFIG,
            attached=self.attached,
            recorder=self.recorder,
            events=self.events,
        )

    async def wait(self, seconds: float = 0.01) -> None:
        await self.world.clock.sleep(seconds)


def run(story: Callable[[Place], Awaitable[None]]) -> None:
    async def main(world: World) -> None:
        place = Place(world)
        place.api.put(NETWORKPOLICIES, CLOSED)
        async with Tasks() as tasks:
            tasks.spawn(place.agent.run(), name="agent")
            await place.wait()
            await story(place)
            tasks.cancel()

    run_virtual(main)


def test_the_pods_of_the_node_are_isolated_and_others_are_not() -> None:
    async def story(place: Place) -> None:
        place.api.put(PODS, pod("here", "10.244.0.2"))
        place.api.put(PODS, pod("there", "10.244.1.2", "node-2"))
        await place.wait()
        assert place.sink.isolated() == ["10.244.0.2"]
        assert place.sink.isolated("egress") == []

    run(story)


def test_labels_of_pods_and_namespaces_and_policies_may_change() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"team": "a"}}, "podSelector": {"matchLabels": {"app": "good"}}}]
    spec = {"podSelector": {"matchLabels": {"app": "server"}}, "ingress": [{"from": peers}]}

    async def story(place: Place) -> None:
        place.api.put(PODS, pod("server", "10.244.0.2", app="server"))
        place.api.put(PODS, pod("client", "10.244.1.2", "node-2", app="good"))
        place.api.put(NETWORKPOLICIES, {**CLOSED, "spec": spec})
        await place.wait()
        assert (place.sink.isolated(), place.sink.peers()) == (["10.244.0.2"], ["10.244.1.2"])
        place.api.put(NAMESPACES, {"metadata": {"name": "default", "labels": {"team": "b"}}})
        await place.wait()
        assert place.sink.peers() == []
        place.api.put(NAMESPACES, {"metadata": {"name": "default", "labels": {"team": "a"}}})
        place.api.put(PODS, pod("client", "10.244.1.2", "node-2", app="bad"))
        await place.wait()
        assert place.sink.peers() == []
        place.api.put(PODS, pod("server", "10.244.0.2", app="other"))
        await place.wait()
        assert place.sink.isolated() == []

    run(story)


def test_a_new_pod_waits_for_the_rules_about_it_before_the_api_knows_its_address() -> None:
    async def story(place: Place) -> None:
        place.attached["s"] = AttachedPod(("default", "new"), "u-new", "10.244.0.7", {"app": "new"})
        await place.agent.admit()
        assert place.sink.isolated() == ["10.244.0.7"]
        place.api.put(PODS, pod("new", ""))
        await place.wait()
        assert place.sink.isolated() == ["10.244.0.7"]

    run(story)


def test_the_story_of_a_pod_says_which_policies_it_goes_by() -> None:
    async def story(place: Place) -> None:
        place.attached["s"] = AttachedPod(("default", "new"), "u-new", "10.244.0.7", {})
        await place.agent.admit()
        await place.agent.admit()
        place.api.put(NETWORKPOLICIES, {**CLOSED, "spec": {"podSelector": {"matchLabels": {"app": "other"}}}})
        await place.wait()
        told = [(each["pod_uid"], each["facts"]) for each in place.recorder.records]
        assert told == [
            ("u-new", {"ingress": ["closed"], "egress": []}),
            ("u-new", {"ingress": [], "egress": []}),
        ]

    run(story)


def test_an_address_that_was_another_pod_s_is_the_new_one_s() -> None:
    selected = {**CLOSED, "spec": {"podSelector": {"matchLabels": {"app": "old"}}}}

    async def story(place: Place) -> None:
        place.api.put(NETWORKPOLICIES, selected)
        place.api.put(PODS, pod("old", "10.244.0.2", app="old"))
        await place.wait()
        assert place.sink.isolated() == ["10.244.0.2"]
        place.attached["s"] = AttachedPod(("default", "new"), "u-new", "10.244.0.2", {"app": "new"})
        await place.agent.admit()
        assert place.sink.isolated() == []

    run(story)


def test_what_the_kernel_refuses_is_written_again_and_new_pods_wait_until_then() -> None:
    async def story(place: Place) -> None:
        place.sink.refusals = 2
        place.attached["s"] = AttachedPod(("default", "new"), "u-new", "10.244.0.7", {})
        before = monotonic(place.world.clock)
        await place.agent.admit()
        assert place.sink.isolated() == ["10.244.0.7"]
        assert monotonic(place.world.clock) > before

    run(story)


def test_with_the_last_policy_the_table_and_the_agent_go() -> None:
    async def main(world: World) -> None:
        place = Place(world)
        place.api.put(NETWORKPOLICIES, CLOSED)
        async with Tasks() as tasks:
            running = tasks.spawn(place.agent.run(), name="agent")
            await place.wait()
            assert not running.done()
            place.api.remove(NETWORKPOLICIES, "closed", "default")
            await place.wait()
            assert running.done() and place.sink.removed == 1
            await place.agent.admit()  # it came too late to be judged

    run_virtual(main)


def test_a_last_policy_that_goes_while_rules_are_written_leaves_no_table() -> None:
    async def main(world: World) -> None:
        place = Place(world)
        place.api.put(NETWORKPOLICIES, CLOSED)
        place.sink.pause = lambda: place.wait(1.0)
        async with Tasks() as tasks:
            running = tasks.spawn(place.agent.run(), name="agent")
            await place.wait(0.5)
            assert place.sink.tried == 1
            place.api.remove(NETWORKPOLICIES, "closed", "default")
            await place.wait(5.0)
            assert running.done() and place.sink.removed == 1

    run_virtual(main)


def test_changes_that_mean_nothing_write_nothing() -> None:
    async def story(place: Place) -> None:
        place.api.put(PODS, pod("here", "10.244.0.2"))
        await place.wait()
        applied = place.sink.applied
        place.api.put(PODS, {**pod("here", "10.244.0.2"), "status": {"podIP": "10.244.0.2", "phase": "Pending"}})
        await place.wait()
        assert place.sink.applied == applied

    run(story)


def test_a_policy_that_cannot_be_read_keeps_no_other_from_its_effect() -> None:
    spec = {"ingress": [{"from": [{"ipBlock": {}}]}]}

    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.api.put(NETWORKPOLICIES, {"metadata": {"name": "broken", "namespace": "default"}, "spec": spec})
            place.api.put(PODS, pod("here", "10.244.0.2"))
            await place.wait()
            assert place.sink.isolated() == ["10.244.0.2"]
            assert [each.key for each in faults.all()] == ["default/broken"]

    run(story)


def test_nothing_happens_before_the_first_policy() -> None:
    async def main(world: World) -> None:
        api = FakeAPI(world)
        async with Tasks() as tasks:
            waiting = tasks.spawn(first_policy(world, api), name="first")
            await world.clock.sleep(60.0)
            assert not waiting.done()
            api.put(NETWORKPOLICIES, CLOSED)
            await world.clock.sleep(0.01)
            assert waiting.done()

    run_virtual(main)


BIG = {"metadata": {"name": "big", "namespace": "evil"}, "spec": {"podSelector": {}, "ingress": [{}]}}


def evil(name: str, ip: str) -> dict[str, Any]:
    found = pod(name, ip)
    found["metadata"]["namespace"] = "evil"
    return found


@pytest.mark.parametrize("error", [RuleError("no"), struct.error("ushort format"), OverflowError("int too large")])
def test_a_pod_whose_rules_the_kernel_refuses_is_closed_and_others_get_theirs(error: Exception) -> None:
    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.sink.refuse = lambda transaction: error if "@block-" in repr(transaction) else None
            block = {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}
            spec = {"podSelector": {}, "ingress": [{"from": [{"ipBlock": block}]}]}
            place.api.put(NETWORKPOLICIES, {**BIG, "spec": spec})
            place.api.put(PODS, evil("e", "10.244.0.66"))
            await place.wait()
            assert place.sink.rules_about("10.244.0.66") == ["drop"]
            place.api.put(PODS, pod("victim", "10.244.0.3"))
            await place.wait()
            assert place.sink.isolated() == ["10.244.0.3", "10.244.0.66"]
            assert place.sink.rules_about("10.244.0.3") == ["drop"], "that of the policy `closed`"
            assert [each.key for each in faults.all()] == ["evil/e"]
            assert [(e["reason"], e["uid"]) for e in place.events.events] == [
                ("NetworkPolicyNotApplied", place.api.objects["pods", "evil", "e"]["metadata"]["uid"])
            ]
            tried = place.sink.tried
            await place.wait(20.0)
            assert place.sink.tried == tried, "nothing is tried again and again"
            place.sink.refuse = lambda transaction: None
            await place.wait(20.0)
            assert place.sink.rules_about("10.244.0.66") == ["ip saddr @block return", "drop"]
            assert len(place.events.events) == 1

    run(story)


def test_a_pod_whose_policies_ask_for_too_much_is_closed_until_they_ask_for_less() -> None:
    peers = [{"ipBlock": {"cidr": f"192.0.2.{number}/32"}} for number in range(250)]
    spec = {"podSelector": {}, "ingress": [{"from": peers, "ports": [{"port": n} for n in range(1, 100)]}]}

    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.api.put(NETWORKPOLICIES, {**BIG, "spec": spec})
            place.api.put(PODS, evil("e", "10.244.0.66"))
            place.api.put(PODS, pod("victim", "10.244.0.3"))
            await place.wait()
            assert place.sink.rules_about("10.244.0.66") == place.sink.rules_about("10.244.0.3") == ["drop"]
            assert [each.key for each in faults.all()] == ["evil/e"]
            (event,) = place.events.events
            assert event["message"] == (
                "NetworkPolicies big cannot be applied: TooManyRulesError: its policies have more than 10000 pairs of "
                "a peer and a port for ingress. Until they can, the Pod is isolated by them and nothing is allowed"
            )
            place.api.put(NETWORKPOLICIES, BIG)
            await place.wait()
            assert place.sink.rules_about("10.244.0.66") == ["return", "drop"]

    run(story)


def test_a_policy_that_cannot_be_read_closes_the_pods_it_selects() -> None:
    async def story(place: Place) -> None:
        with crash_guard.installed():
            spec = {"podSelector": {"matchLabels": {"app": "a"}}, "ingress": [{"from": [{"ipBlock": {}}]}]}
            place.api.put(PODS, {**evil("e", "10.244.0.66"), "spec": {"nodeName": "node-1"}})
            place.api.put(PODS, {**evil("f", "10.244.0.67"), "spec": {"nodeName": "node-1"}})
            selected = place.api.objects["pods", "evil", "e"]
            place.api.put(PODS, {**selected, "metadata": {**selected["metadata"], "labels": {"app": "a"}}})
            place.api.put(NETWORKPOLICIES, {**BIG, "spec": spec})
            await place.wait()
            assert place.sink.isolated() == ["10.244.0.66"]
            (event,) = place.events.events
            assert (event["reason"], event["uid"]) == (
                "NetworkPolicyNotApplied",
                place.api.objects["networkpolicies", "evil", "big"]["metadata"]["uid"],
            )

    run(story)


def test_a_pod_that_cannot_be_read_is_isolated_by_the_labels_of_its_sandbox() -> None:
    async def story(place: Place) -> None:
        with crash_guard.installed():
            broken = pod("new", "10.244.0.7")
            broken["spec"]["containers"] = [{"name": "c", "ports": [{"name": "web"}]}]
            place.attached["s"] = AttachedPod(("default", "new"), "u-new", "10.244.0.7", {})
            place.api.put(PODS, broken)
            place.api.put(PODS, pod("here", "10.244.0.2"))
            await place.wait()
            assert place.sink.isolated() == ["10.244.0.2", "10.244.0.7"]

    run(story)


def test_an_agent_that_meets_what_nobody_expected_goes_on_after_a_while() -> None:
    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.sink.refuse = lambda transaction: MemoryError()
            place.api.put(PODS, pod("here", "10.244.0.2"))
            await place.wait(5.0)
            assert 3 <= place.sink.tried <= 30, "later and later"
            place.sink.refuse = lambda transaction: None
            await place.wait(10.0)
            assert place.sink.isolated() == ["10.244.0.2"]
            assert [each.key for each in faults.all()] == [""]

    run(story)
