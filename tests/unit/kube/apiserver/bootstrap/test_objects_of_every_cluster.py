"""Flow control objects and Service addresses that every cluster has, in virtual time."""

from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.kube.api.resources import FLOWSCHEMAS, PRIORITYLEVELCONFIGURATIONS
from lastcall.kube.api.validation import validate_create
from lastcall.kube.apiserver.bootstrap.flow_control import CONSUMER, FlowControl, dangling, default_objects, is_said
from lastcall.kube.apiserver.bootstrap.service_cidrs import address_object, addresses_of

SERVICE = {"metadata": {"name": "s", "namespace": "n"}, "spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}}


def test_every_cluster_has_eight_priority_levels_and_eleven_flow_schemas() -> None:
    resources = [resource for resource, _ in default_objects()]
    assert resources == [PRIORITYLEVELCONFIGURATIONS] * 8 + [FLOWSCHEMAS] * 11


@pytest.mark.parametrize(("resource", "obj"), list(default_objects()))
def test_the_default_objects_are_valid_and_name_levels_that_exist(resource, obj) -> None:
    assert validate_create(resource, obj) == []
    if resource == FLOWSCHEMAS:
        levels = {each["metadata"]["name"] for kind, each in default_objects() if kind == PRIORITYLEVELCONFIGURATIONS}
        assert obj["spec"]["priorityLevelConfiguration"]["name"] in levels


def test_a_schema_without_its_level_is_told_to_dangle() -> None:
    missing = dangling("a", exists=False)
    assert (missing["status"], missing["reason"]) == ("True", "NotFound")
    assert is_said({"status": {"conditions": [{**missing, "lastTransitionTime": "x"}]}}, missing)
    assert not is_said({"status": {"conditions": [missing]}}, dangling("a", exists=True))


def test_a_condition_that_somebody_else_has_written_is_taken_over(virtual: Any) -> None:
    asked: list[dict[str, Any]] = []

    async def patch(resource: Any, name: str, body: Any, **more: Any) -> None:
        asked.append({"name": name, "status": body["status"], **more})

    async def scenario(api: Any) -> None:
        schema = {"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": "a"}}}
        nothing: Any = SimpleNamespace()
        consumer: Any = SimpleNamespace(patch=patch)
        control = FlowControl(api.world, nothing, consumer, nothing)
        cached: Any = SimpleNamespace(get=lambda namespace, name: schema)
        control._schemas = control._levels = cached
        await control._sync("s")

    virtual(scenario)
    (told,) = asked
    assert told["status"]["conditions"][0]["status"] == "False"
    assert told["field_manager"] == CONSUMER, "an apply with a name of a manager takes fields over"


def test_a_headless_service_has_no_address_and_any_other_an_object_that_names_it() -> None:
    assert addresses_of({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}) == []
    assert addresses_of(SERVICE) == ["10.96.0.9"]
    made = address_object("10.96.0.9", SERVICE)
    assert made["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert made["spec"]["parentRef"] == {"resource": "services", "namespace": "n", "name": "s"}
