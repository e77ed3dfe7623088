"""Leases: what a feature gate that is off takes away."""

from collections.abc import Callable

from lastcall.kube.api.resources import LEASES


def test_fields_of_coordinated_leader_election_are_dropped(virtual: Callable) -> None:
    """(asked of 1.36.2, where the gate is off)"""

    async def scenario(api) -> None:
        asked = {"holderIdentity": "a", "preferredHolder": "b", "strategy": "OldestEmulationVersion"}
        made = await api.admin.create(LEASES, {"metadata": {"name": "l"}, "spec": asked}, "default")
        assert made["spec"] == {"holderIdentity": "a"}
        changed = await api.admin.patch(LEASES, "l", {"spec": {"preferredHolder": "c"}}, "default")
        assert changed["spec"] == {"holderIdentity": "a"}

    virtual(scenario)
