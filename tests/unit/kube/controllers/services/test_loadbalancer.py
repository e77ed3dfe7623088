"""Addresses for Services of type LoadBalancer: the decision, and the controller on the real API server."""

from typing import Any

import pytest
from api_server import ADMIN
from fake_api import FakeAPI, ListRecorder

from lastcall.cli.controller_manager import chosen_controllers
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import EVENTS, SERVICES
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.cluster.options import LOAD_BALANCER_CIDR
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.controllers.services.loadbalancer import ADDRESSES, COMPONENT, NoAddress, decide_address
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

FIRST, SECOND = "172.18.255.1", "172.18.255.2"


def balanced(*ingress: dict[str, Any], **spec: Any) -> dict[str, Any]:
    meta = {"name": spec.pop("name", "web"), "namespace": "default"}
    ports = [{"port": 80, "targetPort": 8080}]
    return {
        "metadata": meta,
        "spec": {"type": "LoadBalancer", "ports": ports, "selector": {"app": "web"}, **spec},
        "status": {"loadBalancer": {"ingress": list(ingress)} if ingress else {}},
    }


@pytest.mark.parametrize(
    ("service", "taken", "address"),
    [
        pytest.param(balanced(), [], FIRST, id="the lowest"),
        pytest.param(balanced(), [FIRST], SECOND, id="that is free"),
        pytest.param(balanced({"ip": SECOND}), [], None, id="what it has stays"),
        pytest.param(balanced({"ip": FIRST}), [FIRST], SECOND, id="unless another has it, too"),
        pytest.param(balanced(loadBalancerIP=SECOND), [], SECOND, id="what it asks for"),
        pytest.param(balanced({"ip": FIRST}, loadBalancerIP=SECOND), [], SECOND, id="what it asks for later"),
        pytest.param(balanced({"ip": "192.0.2.1"}), [], None, id="another's address is left alone"),
        pytest.param(balanced(loadBalancerClass="example.org/x"), [], None, id="another's class is left alone"),
        pytest.param(balanced({"ip": FIRST}, type="NodePort"), [], "", id="no load balancer any more"),
        pytest.param(balanced(type="ClusterIP"), [], None, id="never was one"),
    ],
)
def test_which_address_a_service_gets(service: dict[str, Any], taken: list[str], address: str | None) -> None:
    assert decide_address(service, taken) == address


@pytest.mark.parametrize(
    ("service", "taken"),
    [
        (balanced(loadBalancerIP="192.0.2.1"), []),
        (balanced(loadBalancerIP=FIRST), [FIRST]),
        (balanced(), [str(address) for address in ADDRESSES.hosts()]),
    ],
)
def test_what_cannot_be_given_is_said(service: dict[str, Any], taken: list[str]) -> None:
    with pytest.raises(NoAddress, match=r"172\.18\.255"):
        decide_address(service, taken)


def test_the_range_is_the_one_that_the_nodes_answer_for() -> None:
    assert str(ADDRESSES) == LOAD_BALANCER_CIDR


def test_another_clusters_load_balancers_are_given_addresses_only_when_asked_for() -> None:
    assert COMPONENT not in chosen_controllers("*")
    assert COMPONENT in chosen_controllers(f"*,{COMPONENT}")


async def _ingress(client: Client, name: str) -> list[Any]:
    status = (await client.get(SERVICES, name, "default"))["status"]["loadBalancer"]
    found: list[Any] = status.get("ingress") or []
    return found


def test_services_get_their_addresses_and_give_them_back() -> None:
    async def main(world: World) -> None:
        server = APIServer(
            world=world, store=MemoryStore(), recorder=ListRecorder(world), config=APIServerConfig(root_ca_pem=b"CA")
        )
        await server.bootstrap()
        client = server.client(ADMIN)
        async with Tasks() as tasks:
            tasks.spawn(
                run_controllers(
                    gates=FeatureGates(),
                    world=world,
                    client=client,
                    recorder_for=lambda _: ListRecorder(world),
                    root_ca_pem=b"CA",
                    names=[COMPONENT],
                ),
                name="controllers",
            )
            for name in ("one", "two"):
                await client.create(SERVICES, balanced(name=name), "default")
            await client.create(SERVICES, balanced(name="three", loadBalancerIP=FIRST), "default")
            await world.clock.sleep(1.0)
            assert await _ingress(client, "one") == [{"ip": FIRST, "ipMode": "VIP"}]
            assert await _ingress(client, "two") == [{"ip": SECOND, "ipMode": "VIP"}]
            assert await _ingress(client, "three") == []
            reasons = [(e["involvedObject"]["name"], e["reason"]) for e in (await client.list(EVENTS)).items]
            assert ("one", "EnsuredLoadBalancer") in reasons
            assert ("three", "SyncLoadBalancerFailed") in reasons

            await client.patch(SERVICES, "one", {"spec": {"type": "ClusterIP"}}, "default")
            await world.clock.sleep(1.0)
            assert await _ingress(client, "one") == []
            assert await _ingress(client, "three") == [{"ip": FIRST, "ipMode": "VIP"}], "it waited for this one"
            tasks.cancel()

    run_virtual(main)


def test_a_health_check_node_port_is_given_kept_and_taken_away() -> None:
    async def main(world: World) -> None:
        server = APIServer(
            world=world, store=MemoryStore(), recorder=ListRecorder(world), config=APIServerConfig(root_ca_pem=b"CA")
        )
        await server.bootstrap()
        client = server.client(ADMIN)
        made = await client.create(SERVICES, balanced(externalTrafficPolicy="Local"), "default")
        port = made["spec"]["healthCheckNodePort"]
        assert 30000 <= port <= 32767
        assert port != made["spec"]["ports"][0]["nodePort"]
        other = balanced(name="other", externalTrafficPolicy="Local", healthCheckNodePort=port)
        with pytest.raises(StatusError, match="already allocated"):
            await client.create(SERVICES, other, "default")
        kept = await client.patch(SERVICES, "web", {"metadata": {"labels": {"a": "b"}}}, "default")
        assert kept["spec"]["healthCheckNodePort"] == port
        changed = await client.patch(SERVICES, "web", {"spec": {"externalTrafficPolicy": "Cluster"}}, "default")
        assert "healthCheckNodePort" not in changed["spec"]
        again = balanced(name="other", externalTrafficPolicy="Local", healthCheckNodePort=port)
        assert (await client.create(SERVICES, again, "default"))["spec"]["healthCheckNodePort"] == port

    run_virtual(main)


def test_an_address_that_somebody_took_away_is_given_again() -> None:
    """The controller remembers what it gave only until its cache shows it."""

    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=[COMPONENT],
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            for _ in range(2):
                api.put(SERVICES, balanced())
                await world.clock.sleep(1)
                (found,) = api.of(SERVICES)
                assert found["status"]["loadBalancer"]["ingress"] == [{"ip": FIRST, "ipMode": "VIP"}]
            tasks.cancel()

    run_virtual(main)
