"""What every test here uses."""

import pytest
from scenario.translation import what_is_made_can_be_told_in_japanese  # noqa: F401 (a fixture of every test here)
from shared_objects import shared_objects_stay_as_they_are  # noqa: F401 (a fixture of every test here)
from virtual_cluster import VirtualCluster

WITH_THEIR_OWN_RIGHTS = (
    "owners/",
    "test_claims.py",
    "test_endpoints.py",
    "test_garbage_collection.py",
    "test_metrics.py",
    "test_namespaces.py",
    "test_nodes.py",
    "test_pod_gc.py",
    "test_quotas.py",
)
"""Scenarios in which each controller may do what Kubernetes allows it, and nothing else."""


@pytest.fixture(autouse=True)
def controllers_have_their_own_rights(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    where = request.path.as_posix().partition("/scenarios/")[2]
    monkeypatch.setattr(VirtualCluster, "own_rights", where.startswith(WITH_THEIR_OWN_RIGHTS))
