"""Every namespace has its default ServiceAccount and the root CA."""

from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import CONFIGMAPS, NAMESPACES, SERVICEACCOUNTS
from lastcall.kube.controllers.manager import run_controllers
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def with_controllers(test):
    async def main(world: World):
        api = FakeAPI(world)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world,
                client=api,
                recorder_for=lambda _: ListRecorder(world),
                root_ca_pem=b"-----CA-----\n",
            )
            tasks.spawn(controllers, name="controllers")
            try:
                return await test(world, api)
            finally:
                tasks.cancel()

    return run_virtual(main)


def names(api, resource, namespace="team"):
    return [o["metadata"]["name"] for o in api.of(resource, namespace)]


def test_a_new_namespace_gets_both_at_once():
    async def test(world, api):
        await world.clock.sleep(1)
        api.put(NAMESPACES, {"metadata": {"name": "team"}})
        await world.clock.sleep(0.001)
        assert names(api, SERVICEACCOUNTS) == ["default"]
        (config_map,) = api.of(CONFIGMAPS, "team")
        assert config_map["metadata"]["name"] == "kube-root-ca.crt"
        assert config_map["data"] == {"ca.crt": "-----CA-----\n"}
        assert "CA bundle" in config_map["metadata"]["annotations"]["kubernetes.io/description"]

    with_controllers(test)


def test_what_is_deleted_or_spoiled_comes_back():
    async def test(world, api):
        api.put(NAMESPACES, {"metadata": {"name": "team"}})
        await world.clock.sleep(1)
        api.remove(SERVICEACCOUNTS, "default", "team")
        (config_map,) = api.of(CONFIGMAPS, "team")
        api.put(CONFIGMAPS, {**config_map, "data": {"ca.crt": "forged"}})
        await world.clock.sleep(1)
        assert names(api, SERVICEACCOUNTS) == ["default"]
        assert api.of(CONFIGMAPS, "team")[0]["data"] == {"ca.crt": "-----CA-----\n"}
        api.remove(CONFIGMAPS, "kube-root-ca.crt", "team")
        await world.clock.sleep(1)
        assert names(api, CONFIGMAPS) == ["kube-root-ca.crt"]

    with_controllers(test)


def test_nothing_is_made_in_a_terminating_namespace():
    async def test(world, api):
        api.put(NAMESPACES, {"metadata": {"name": "team", "deletionTimestamp": "2030-01-01T00:00:00Z"}})
        await world.clock.sleep(5)
        assert names(api, SERVICEACCOUNTS) == names(api, CONFIGMAPS) == []

    with_controllers(test)


def test_a_namespace_that_ends_while_we_write_is_no_failure_but_a_missing_right_is_tried_again():
    async def test(world, api):
        details = {"causes": [{"reason": "NamespaceTerminating"}]}
        api.fail_next("create", "serviceaccounts", status_failure(403, "Forbidden", "terminating", details))
        api.put(NAMESPACES, {"metadata": {"name": "team"}})
        await world.clock.sleep(60)
        assert names(api, SERVICEACCOUNTS) == []
        api.fail_next("create", "serviceaccounts", status_failure(403, "Forbidden", "no rights"))
        api.put(NAMESPACES, {"metadata": {"name": "other"}})
        await world.clock.sleep(60)
        assert names(api, SERVICEACCOUNTS, "other") == ["default"]

    with_controllers(test)


def test_a_server_that_was_away_and_an_object_that_is_there_already_are_no_trouble():
    async def test(world, api):
        api.fail_next("create", "serviceaccounts", ConnectionLost("down"), times=3)
        api.fail_next("create", "configmaps", status_failure(409, "AlreadyExists", "exists"))
        api.put(NAMESPACES, {"metadata": {"name": "team"}})
        await world.clock.sleep(60)
        assert names(api, SERVICEACCOUNTS) == ["default"]

    with_controllers(test)
