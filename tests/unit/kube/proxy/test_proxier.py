"""The proxy of a node in virtual time: news, delays, failures, restarts, records."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import FakeAPI, ListRecorder
from node_world import ListEvents
from rule_kernel import KernelSink
from services import endpoint, endpoint_slice, service

from lastcall.kube.api.resources import ENDPOINTSLICES, NODES, SERVICES
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.proxy import view
from lastcall.kube.proxy.first_service import first_service
from lastcall.kube.proxy.health import ServiceHealth, answer
from lastcall.kube.proxy.propagation import Propagation
from lastcall.kube.proxy.proxier import Proxier, ProxyConfig
from lastcall.kube.proxy.services import ServiceKey
from lastcall.kube.proxy.sink import RecordingSink
from lastcall.kube.proxy.topology import Node
from lastcall.records import kinds
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

A, B = "10.244.0.2", "10.244.0.3"
VIP = "10.96.0.10"


class Health:
    def __init__(self) -> None:
        self.told: list[dict[ServiceKey, ServiceHealth]] = []

    async def update(self, services: Any) -> None:
        self.told.append(dict(services))


class Place:
    """An API, a kernel and a proxy between them."""

    def __init__(self, world: World, propagation: Propagation | None = None, seconds: float = 0.0) -> None:
        self.world = world
        self.api = FakeAPI(world)
        self.api.put(NODES, {"metadata": {"name": "node-1"}})
        self.sink = KernelSink(world, seconds)
        self.recorder = ListRecorder(world)
        self.health = Health()
        self.events = ListEvents(world)
        self.propagation = propagation or Propagation()

    def proxy(self) -> Proxier:
        return Proxier(
            world=self.world,
            client=self.api,
            recorder=self.recorder,
            sink=self.sink,
            events=self.events,
            config=ProxyConfig(Node("node-1", addresses=("172.18.0.2",)), "10.244.0.0/16", "10.96.0.0/16"),
            propagation=self.propagation,
            health=self.health,
        )

    def put(self, *endpoints: dict[str, Any], **more: Any) -> None:
        self.api.put(ENDPOINTSLICES, endpoint_slice(*endpoints, **more))

    def backends(self, address: str = VIP, port: int = 80) -> list[str]:
        return self.sink.kernel.backends(address, port)

    async def wait(self, seconds: float = 0.01) -> None:
        await self.world.clock.sleep(seconds)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.recorder.records if record["kind"] == kind]


def run(story: Callable[[Place], Awaitable[None]], **more: Any) -> None:
    async def main(world: World) -> None:
        place = Place(world, **more)
        async with Tasks() as tasks:
            tasks.spawn(place.proxy().run(), name="proxy")
            await place.wait()
            await story(place)
            tasks.cancel()

    run_virtual(main)


def test_endpoints_come_and_go_and_the_kernel_follows() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(endpoint(A))
        await place.wait()
        assert place.backends() == [A]
        place.put(endpoint(A), endpoint(B))
        await place.wait()
        assert place.backends() == [A, B]
        place.api.remove(SERVICES, "web", "default")
        await place.wait()
        assert place.backends() == []

    run(story)


def test_the_kernel_is_left_alone_until_there_is_a_service_to_serve() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service("kubernetes", "10.96.0.1"))
        own = endpoint_slice(endpoint("172.18.0.1"), name="kubernetes", service="kubernetes")
        own["ports"] = [{"name": "http", "protocol": "TCP", "port": 6443}]
        place.api.put(ENDPOINTSLICES, own)
        await place.wait(60.0)
        assert place.sink.written == []
        place.api.put(SERVICES, service())
        await place.wait()
        assert len(place.sink.written) == 1
        assert list(place.sink.kernel.sets["node-services"]) == [("10.96.0.1",)]

    run(story)


def test_the_proxy_is_waited_for_by_the_first_service_that_needs_it() -> None:
    async def main(world: World) -> None:
        api = FakeAPI(world)
        api.put(SERVICES, service("kubernetes", "10.96.0.1"))
        async with Tasks() as tasks:
            waiting = tasks.spawn(first_service(world, api), name="first Service")
            await world.clock.sleep(60.0)
            assert not waiting.done()
            api.put(SERVICES, service())
            await world.clock.sleep(0.01)
            assert waiting.done()

    run_virtual(main)


def test_what_comes_at_once_is_written_at_once() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        await place.wait()
        before = len(place.sink.written)
        for number in range(50):
            place.put(*(endpoint(f"10.244.0.{n + 2}") for n in range(number)))
        await place.wait(1.0)
        assert len(place.backends()) == 49
        assert len(place.sink.written) - before <= 3

    run(story, seconds=0.1)


def test_each_hop_has_its_delay_and_order_is_kept() -> None:
    seen: list[float] = []

    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(endpoint(A))
        await place.wait(4.9)
        start = monotonic(place.world.clock)
        place.put(endpoint(A, False, True, True), endpoint(B))
        await place.wait(1.0)
        place.propagation.api_to_proxy = 0.0  # what is sent later must not overtake
        place.put(endpoint(B))
        await place.wait(1.9)
        assert place.backends() == [A], "3 s have not passed"
        await place.wait(0.2)
        assert place.backends() == [B]
        seen.append(start)
        (change,) = [r for r in place.of(kinds.ENDPOINT_CHANGE_SEEN) if r["facts"].get("terminating")]
        assert change["at"] - start == pytest.approx(2.0, abs=0.01)
        (written,) = [r for r in place.of(kinds.ENDPOINT_RULES_WRITTEN) if r["facts"]["received"]][:1]
        assert written["at"] - start == pytest.approx(3.0, abs=0.02)
        assert written["facts"]["seconds"] == pytest.approx(1.0, abs=0.02)

    run(story, propagation=Propagation(2.0, lambda: 1.0))
    assert seen


def test_a_proxy_that_starts_anew_replaces_what_is_there_without_waiting_for_the_delay() -> None:
    async def main(world: World) -> None:
        place = Place(world, Propagation(5.0, 5.0))
        place.api.put(SERVICES, service())
        place.put(endpoint(A))
        for addresses in ((A,), (A, B)):
            place.put(*map(endpoint, addresses))
            async with Tasks() as tasks:
                tasks.spawn(place.proxy().run(), name="proxy")
                await place.wait()
                assert place.backends() == list(addresses)
                tasks.cancel()
        assert [transaction.replace for _, transaction in place.sink.written] == [True, True]

    run_virtual(main)


def test_a_proxy_that_finds_old_rules_and_no_service_takes_them_away() -> None:
    async def main(world: World) -> None:
        place = Place(world)
        place.sink.stands = True
        async with Tasks() as tasks:
            tasks.spawn(place.proxy().run(), name="proxy")
            await place.wait()
            tasks.cancel()
        assert [transaction.replace for _, transaction in place.sink.written] == [True]

    run_virtual(main)


def test_rules_that_the_kernel_refuses_are_tried_again_later_and_later_and_it_is_said() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        await place.wait()
        place.sink.failures = ["no memory"] * 3
        place.put(endpoint(A))
        await place.wait(0.05)
        place.put(endpoint(B))  # while it waits
        await place.wait(2.0)
        assert place.backends() == [B]
        assert [r["facts"]["retryInSeconds"] for r in place.of(kinds.RULES_REFUSED)] == [0.1, 0.2, 0.4]
        assert place.of(kinds.RULES_REFUSED)[0]["facts"]["error"] == "no memory"
        assert place.sink.written[-1][1].replace, "what the table holds is not known any more"

    run(story)


def test_a_lost_api_is_no_reason_to_forget_endpoints() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(endpoint(A))
        await place.wait()
        place.api.fail_next("list", "endpointslices", ConnectionLost("away"), times=5)
        place.api.break_watches(ConnectionLost("away"))
        await place.wait(0.1)
        assert place.backends() == [A]
        place.put(endpoint(B))
        await place.wait(60.0)
        assert place.backends() == [B]

    run(story)


def test_the_records_tell_what_the_proxy_saw_and_when_the_kernel_stopped_sending() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(endpoint(A), endpoint(B))
        await place.wait()
        place.recorder.records.clear()
        place.put(endpoint(A, False, True, True), endpoint(B))
        version = str(place.api.version)
        await place.wait()
        seen, written = place.recorder.records
        assert (seen["kind"], seen["pod_uid"]) == (kinds.ENDPOINT_CHANGE_SEEN, f"pod-{A}")
        assert seen["facts"] == {
            "node": "node-1",
            "service": "web",
            "slice": "web-1",
            "address": A,
            "ready": False,
            "serving": True,
            "terminating": True,
            "observedResourceVersion": version,
        }
        facts = written["facts"]
        assert (written["kind"], written["pod_uid"]) == (kinds.ENDPOINT_RULES_WRITTEN, f"pod-{A}")
        assert (facts["received"], facts["receives"], facts["ready"]) == (True, False, False)

    run(story)


def test_the_last_endpoint_goes_on_receiving_while_it_terminates_and_the_record_says_so() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(endpoint(A))
        await place.wait()
        place.put(endpoint(A, False, True, True))
        await place.wait()
        facts = place.of(kinds.ENDPOINT_RULES_WRITTEN)[-1]["facts"]
        assert (facts["received"], facts["receives"], facts["ready"]) == (True, True, False)
        assert place.backends() == [A]
        place.put()
        await place.wait()
        assert place.of(kinds.ENDPOINT_CHANGE_SEEN)[-1]["facts"]["removed"] is True
        assert place.of(kinds.ENDPOINT_RULES_WRITTEN)[-1]["facts"]["receives"] is False
        assert (VIP, "TCP", 80) in place.sink.kernel.sets["no-endpoints"]

    run(story)


def test_a_change_that_comes_during_a_write_is_not_told_as_written_by_it() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(endpoint(A), endpoint(B))
        await place.wait(5.0)
        place.recorder.records.clear()
        place.put(endpoint(A, False, True, True), endpoint(B))
        await place.wait(0.5)
        place.put(endpoint("10.244.0.4"), endpoint(B))  # the write of the change before takes 1 s
        await place.wait(5.0)
        first, *later = place.of(kinds.ENDPOINT_RULES_WRITTEN)
        assert (first["facts"]["received"], first["facts"]["receives"]) == (True, False)
        assert {round(r["at"] - first["at"], 2) for r in later} == {1.0}

    run(story, seconds=1.0)


def test_services_that_nobody_serves_have_no_records() -> None:
    async def story(place: Place) -> None:
        place.put(endpoint(A))
        await place.wait()
        assert place.recorder.records == []

    run(story)


def test_many_services_are_looked_at_in_slices_and_what_comes_meanwhile_is_written_after() -> None:
    async def main(world: World) -> None:
        place = Place(world)
        for number in range(250):
            name = f"s{number}"
            place.api.put(SERVICES, service(name, f"10.96.1.{number}"))
            place.put(endpoint(A), name=name, service=name)
        async with Tasks() as tasks:
            tasks.spawn(place.proxy().run(), name="proxy")
            for _ in range(30):  # at every turn of the loop another change
                place.put(endpoint(A, False, True, True), endpoint(B), name="s0", service="s0")
                await place.wait(0.0)
                place.put(endpoint(B), name="s0", service="s0")
                await place.wait(0.0)
            await place.wait()
            tasks.cancel()
        assert place.backends("10.96.1.0") == [B]
        assert place.backends("10.96.1.249") == [A]
        seen = [r for r in place.of(kinds.ENDPOINT_CHANGE_SEEN) if r["facts"]["service"] == "s0"]
        written = [r for r in place.of(kinds.ENDPOINT_RULES_WRITTEN) if r["facts"]["service"] == "s0"]
        assert len(seen) == len(written)

    run_virtual(main)


UDP = {"ports": [{"name": "dns", "protocol": "UDP", "port": 53}]}


def test_udp_flows_are_forgotten_when_an_endpoint_goes_or_the_first_one_comes() -> None:
    ports = [{"name": "dns", "protocol": "UDP", "port": 53}]

    async def story(place: Place) -> None:
        place.api.put(SERVICES, service(**UDP))
        await place.wait()
        assert place.sink.forgotten == [], "a Service without endpoints keeps what it has"
        place.put(endpoint(A), ports=ports)
        await place.wait()
        place.put(endpoint(A), endpoint(B), ports=ports)
        await place.wait()
        place.put(endpoint(A, False, True, True), endpoint(B), ports=ports)
        await place.wait()
        place.put(endpoint(B), ports=ports)
        await place.wait()
        assert place.sink.forgotten == [{(VIP, 53): frozenset({A})}, {(VIP, 53): frozenset({B})}]

    run(story)


def test_node_ports_follow_the_addresses_of_the_node() -> None:
    async def story(place: Place) -> None:
        ports = [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}]
        place.api.put(SERVICES, service(type="NodePort", ports=ports))
        place.put(endpoint(A))
        await place.wait()
        assert place.backends("172.18.0.2", 30080) == [A]
        addresses = [{"type": "InternalIP", "address": "172.18.0.9"}, {"type": "Hostname", "address": "node-1"}]
        place.api.put(NODES, {"metadata": {"name": "node-1"}, "status": {"addresses": addresses}})
        await place.wait()
        assert place.backends("172.18.0.2", 30080) == []
        assert place.backends("172.18.0.9", 30080) == [A]

    run(story)


def test_the_zone_of_the_node_decides_once_it_is_known() -> None:
    async def story(place: Place) -> None:
        place.api.put(SERVICES, service())
        place.put(
            endpoint(A, hints={"forZones": [{"name": "z1"}]}),
            endpoint(B, hints={"forZones": [{"name": "z2"}]}),
        )
        await place.wait()
        assert place.backends() == [A, B]
        labels = {"topology.kubernetes.io/zone": "z2"}
        place.api.put(NODES, {"metadata": {"name": "node-1", "labels": labels}})
        await place.wait()
        assert place.backends() == [B]

    run(story)


def test_health_check_node_ports_are_kept_in_step() -> None:
    async def story(place: Place) -> None:
        balanced = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000}
        place.api.put(SERVICES, service(**balanced))
        place.put(endpoint(A))
        await place.wait()
        place.put(endpoint(A, False, True, True))
        await place.wait()
        place.api.put(SERVICES, service())
        await place.wait()
        told = [list(each.values()) for each in place.health.told]
        assert told[-3:] == [[ServiceHealth(31000, 1)], [ServiceHealth(31000, 0)], []]

    run(story)


def test_the_answer_of_a_health_check_is_kube_proxys() -> None:
    status, headers, body = answer(("default", "web"), 2)
    assert (status, headers["X-Load-Balancing-Endpoint-Weight"]) == (200, "2")
    assert '"localEndpoints": 2' in body
    assert answer(("default", "web"), 0)[0] == 503
    assert answer(("default", "web"), 2, proxy_is_healthy=False)[0] == 503


def test_the_recording_sink_keeps_everything_for_the_virtual_world() -> None:
    async def main(world: World) -> None:
        place = Place(world)
        sink = place.sink = RecordingSink()  # type: ignore[assignment]
        place.api.put(SERVICES, service())
        place.put(endpoint(A))
        async with Tasks() as tasks:
            tasks.spawn(place.proxy().run(), name="proxy")
            await place.wait()
            tasks.cancel()
        assert [transaction.replace for transaction in sink.transactions] == [True]

    run_virtual(main)


def test_a_service_that_the_kernel_does_not_take_keeps_no_other_from_its_rules() -> None:
    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.api.put(SERVICES, service())
            place.put(endpoint(A))
            await place.wait()
            place.sink.refused = "10.96.0.66"
            place.api.put(SERVICES, service("bad", "10.96.0.66"))
            await place.wait(5.0)
            assert faults.of("service proxy", "default/bad") and not faults.of("service proxy", "default/web")
            bad = place.api.objects["services", "default", "bad"]["metadata"]["uid"]
            assert [(e["reason"], e["uid"]) for e in place.events.events] == [("InternalError", bad)]
            place.put(endpoint(B))
            await place.wait(60.0)
            assert place.backends() == [B]
            place.sink.refused = ""
            await place.wait(60.0)
            assert any("10.96.0.66" in repr(transaction) for _, transaction in place.sink.written)

    run(story)


def test_a_service_that_cannot_be_read_keeps_no_other_from_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    real = view.parse_service

    def parse(obj: Any) -> Any:
        if obj["metadata"]["name"] == "bad":
            raise OverflowError("too big")
        return real(obj)

    monkeypatch.setattr(view, "parse_service", parse)

    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.api.put(SERVICES, service("bad", "10.96.0.66"))
            place.api.put(SERVICES, service())
            place.put(endpoint(A))
            await place.wait()
            assert place.backends() == [A]
            assert [event["reason"] for event in place.events.events] == ["InternalError"]
            assert [each.key for each in faults.all()] == ["default/bad"]

    run(story)


def test_a_service_that_multiplies_addresses_ports_and_endpoints_keeps_no_other_from_its_rules() -> None:
    """In one megabyte there is room for 10 000 ports and 10 000 externalIPs."""
    ports = [{"name": f"p{n}", "protocol": "TCP", "port": n, "targetPort": n} for n in range(1, 1002)]
    addresses = [f"192.0.2.{n}" for n in range(100)]

    async def story(place: Place) -> None:
        with crash_guard.installed() as faults:
            place.api.put(SERVICES, service())
            place.put(endpoint(A))
            place.api.put(SERVICES, service("bad", "10.96.0.66", ports=ports, externalIPs=addresses))
            await place.wait()
            assert place.backends() == [A]
            assert [each.key for each in faults.all()] == ["default/bad"]
            (event,) = place.events.events
            assert event["message"].endswith(
                "it has 101101 combinations of address, port and endpoint; 100000 is the most"
            )
            assert not any("10.96.0.66" in repr(transaction) for _, transaction in place.sink.written)

    run(story)
