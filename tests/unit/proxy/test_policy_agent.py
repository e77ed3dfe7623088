"""The agent of a node in virtual time: what it follows, what it writes, whom it lets wait."""

from collections.abc import Awaitable, Callable
from typing import Any

from fake_api import FakeAPI, ListRecorder
from rule_kernel import Kernel

from lastcall.api.resources import NAMESPACES, NETWORKPOLICIES, PODS
from lastcall.nftables.objects import Transaction
from lastcall.proxy.policies.agent import PolicyAgent, PolicyConfig
from lastcall.proxy.policies.first_policy import AttachedPod, first_policy
from lastcall.proxy.policies.policy import PolicyPod
from lastcall.proxy.policies.table import Alias
from lastcall.proxy.sink import RuleError
from lastcall.world import walls
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

    async def apply(self, transaction: Transaction) -> None:
        if self.refusals:
            self.refusals -= 1
            raise RuleError("no memory")
        self.kernel.apply(transaction)
        self.applied += 1

    async def remove(self) -> None:
        self.kernel = Kernel()
        self.removed += 1

    def isolated(self, direction: str = "ingress") -> list[str]:
        return sorted(str(key[0]) for key in self.kernel.sets.get(f"isolated-{direction}", ()))

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
        self.agent = PolicyAgent(
            world=world, client=self.api, sink=self.sink, config=CONFIG, attached=self.attached, recorder=self.recorder
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
        with walls.standing() as faults:
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
