"""`run_controllers` runs the controllers that it is asked for, and no other asks the API for anything."""

from collections.abc import Collection

import pytest
from fake_api import FakeAPI, ListRecorder

from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.controllers.access.certificates.first_request import NAME as CERTIFICATES
from lastcall.kube.controllers.manager import CONTROLLERS, run_controllers
from lastcall.kube.controllers.serviceaccount.tokens import COMPONENT as TOKENS
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def watched(names: Collection[str]) -> set[str]:
    """The kinds that are watched after a second."""

    async def main(world: World) -> set[str]:
        api, recorder = FakeAPI(world), ListRecorder(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: recorder,
                root_ca_pem=b"ca",
                names=names,
            )
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(1)
            tasks.cancel()
        assert all(verb in ("list", "watch") for verb, _, _ in api.calls), "there is nothing to write"
        return {plural for verb, plural, _ in api.calls if verb == "watch"}

    return run_virtual(main)


def test_nobody_who_is_not_asked_for_watches_anything() -> None:
    assert watched([]) == set()


@pytest.mark.parametrize(
    ("name", "plurals"),
    [
        ("replicaset-controller", {"replicasets", "pods"}),
        ("deployment-controller", {"deployments", "replicasets", "pods"}),
        ("ttl-controller", {"nodes"}),
        ("clusterrole-aggregation-controller", {"clusterroles"}),
        ("endpointslice-controller", {"endpointslices", "pods", "services", "nodes"}),
        ("serviceaccount-controller", {"serviceaccounts", "configmaps", "namespaces"}),
        (CERTIFICATES, {"certificatesigningrequests"}),
        (TOKENS, {"secrets"}),
    ],
)
def test_a_controller_watches_the_kinds_that_it_needs(name: str, plurals: set[str]) -> None:
    assert watched([name]) == plurals


def test_every_controller_has_something_to_watch() -> None:
    for name in CONTROLLERS:
        assert watched([name]), name
