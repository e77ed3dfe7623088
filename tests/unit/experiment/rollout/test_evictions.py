"""An eviction that is refused: what is told, and the way out."""

import asyncio
from typing import Any

import pytest

from lastcall.errors import WorldError
from lastcall.experiment.rollout.disruption import Disruption
from lastcall.kube.api.errors import StatusError, forbidden
from lastcall.world.clock import RealClock

POD = {"metadata": {"name": "naive", "namespace": "shop", "uid": "u1"}}
WHO = (
    'User "system:serviceaccount:shop:dev" cannot create resource "pods/eviction" in API group "" '
    'in the namespace "shop"'
)
ROLE = "lastcall-create-pods:eviction-for-system:serviceaccount:shop:dev"


class Refusing:
    def __init__(self, error: StatusError) -> None:
        self.error = error

    async def create(self, *arguments: Any, **named: Any) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("why", "fixes"),
    [
        (
            WHO,
            [
                f"kubectl create role {ROLE} --verb=create --resource=pods/eviction -n shop",
                f"kubectl create rolebinding {ROLE} --role={ROLE} --serviceaccount=shop:dev -n shop",
            ],
        ),
        ("a webhook says no", []),
    ],
)
def test_an_eviction_without_the_right_names_the_commands_that_give_it(why: str, fixes: list[str]) -> None:
    web: Any = None  # the Pod is what is evicted
    client: Any = Refusing(forbidden("pods", "naive", why))
    disruption = Disruption(client, RealClock(), web, "evict", 5.0, lambda waited, text: None)
    with pytest.raises(WorldError) as told:
        asyncio.run(disruption.evict(POD))
    first, *rest = str(told.value).splitlines()
    assert first == f'naive cannot be evicted: pods "naive" is forbidden: {why}'
    assert rest == [f"  fix, as an administrator: {each}" for each in fixes]
