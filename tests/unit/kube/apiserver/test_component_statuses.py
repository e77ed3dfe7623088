"""How the parts of the control plane are (v1 ComponentStatus)."""

from datetime import UTC, datetime

import orjson
import pytest

from lastcall.kube.api.errors import StatusError, not_watched
from lastcall.kube.api.resources import COMPONENTSTATUSES, NODE_METRICS
from lastcall.kube.apiserver.answers.computed import computed_body
from lastcall.kube.apiserver.subresources.component_statuses import (
    CONTROLLER_MANAGER,
    SCHEDULER,
    STORE,
    ComponentStatuses,
    component_status,
    lease_problem,
    status_list,
)
from lastcall.kube.apiserver.wire.negotiation import negotiate
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.virtual import run_virtual

MOMENT = datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"


def held(renewed: str) -> dict:
    return {"spec": {"holderIdentity": "elsewhere", "renewTime": renewed, "leaseDurationSeconds": 15}}


@pytest.mark.parametrize(
    ("lease", "problem"),
    [
        (None, "it does not run: nobody holds its Lease"),
        (
            {"spec": {"holderIdentity": "", "renewTime": "2026-01-01T12:00:00Z"}},
            "it does not run: nobody holds its Lease",
        ),
        (held("2026-01-01T12:00:00.000000Z"), ""),
        (held("2026-01-01T11:59:00Z"), "elsewhere has not renewed its Lease since 2026-01-01T11:59:00Z"),
    ],
)
def test_a_component_of_another_process_is_well_while_its_lease_is_renewed(lease, problem):
    assert lease_problem(lease, MOMENT) == problem


def test_an_object_and_a_list_are_as_kubernetes_writes_them():
    one = component_status("etcd-0", "")
    assert one == {
        "kind": "ComponentStatus",
        "apiVersion": "v1",
        "metadata": {"name": "etcd-0"},
        "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
    }
    bare = {"metadata": one["metadata"], "conditions": one["conditions"]}
    assert status_list([one]) == {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": [bare]}


def test_a_table_names_what_is_not_well():
    listed = status_list([component_status("scheduler", "it does not run"), component_status("etcd-0", "")])
    media_type = negotiate(TABLE, list_=True)
    table = orjson.loads(computed_body(COMPONENTSTATUSES, listed, media_type, {}, MOMENT, 36))
    assert table["metadata"] == {}
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Status", "Message", "Error"]
    assert [each["cells"] for each in table["rows"]] == [
        ["scheduler", "Unhealthy", "it does not run", ""],
        ["etcd-0", "Healthy", "ok", ""],
    ]


def test_metadata_alone_of_one_and_of_all():
    one = component_status("etcd-0", "")
    media_type = negotiate(METADATA.format(""), list_=False)
    shown = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "etcd-0"}}
    assert orjson.loads(computed_body(COMPONENTSTATUSES, one, media_type, {}, MOMENT, 36)) == shown
    media_type = negotiate(METADATA.format("List"), list_=True)
    listed = orjson.loads(computed_body(COMPONENTSTATUSES, status_list([one]), media_type, {}, MOMENT, 36))
    assert (listed["kind"], listed["items"]) == ("PartialObjectMetadataList", [shown])


def test_what_is_stored_nowhere_cannot_be_watched():
    error = not_watched(COMPONENTSTATUSES)
    assert (error.code, error.message) == (405, 'watch is not supported on resources of kind "componentstatuses"')
    assert error.status["details"] == {"kind": "componentstatuses"}
    assert not_watched(NODE_METRICS).status["details"] == {"group": "metrics.k8s.io", "kind": "nodes"}


def test_what_runs_in_this_process_is_well_and_another_name_is_not_found():
    async def main(world):
        running = {CONTROLLER_MANAGER}

        async def find(resource, namespace, name):
            return None

        statuses = ComponentStatuses(world, MemoryStore(), lambda: running, find)
        listed = await statuses.all_of(COMPONENTSTATUSES, "", lambda each: True)
        well = {each["metadata"]["name"]: each["conditions"][0]["status"] for each in listed["items"]}
        assert well == {CONTROLLER_MANAGER: "True", SCHEDULER: "False", STORE: "True"}
        running.add(SCHEDULER)
        one = await statuses.get(COMPONENTSTATUSES, "", SCHEDULER)
        assert one["conditions"][0]["status"] == "True"
        with pytest.raises(StatusError) as refused:
            await statuses.get(COMPONENTSTATUSES, "", "etcd-1")
        assert refused.value.message == 'componentstatus "etcd-1" not found'
        assert refused.value.status["details"] == {"name": "etcd-1", "kind": "componentstatus"}

    run_virtual(main)
