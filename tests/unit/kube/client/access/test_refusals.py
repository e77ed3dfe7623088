"""Missing rights of a component are told once, counted, and told again after a while."""

import pytest

from lastcall.kube.api.errors import status_failure
from lastcall.kube.client.access.refusals import AGAIN_SECONDS, MOST, Refusals
from lastcall.kube.client.access.rights import Right
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def refused(user: str = "system:serviceaccount:kube-system:job-controller", namespace: str = "shop") -> object:
    what = f'cannot patch resource "pods" in API group "" in the namespace "{namespace}"'
    message = f'pods "a" is forbidden: User "{user}" {what}'
    return status_failure(403, "Forbidden", message)


def test_a_missing_right_is_told_at_once_and_again_after_ten_minutes_with_its_count() -> None:
    told: list[tuple[str, int]] = []

    async def scenario(world: World) -> None:
        refusals = Refusals(world, lambda right, count: told.append((right.words, count)))
        for _ in range(3):
            refusals.note(refused())  # type: ignore[arg-type]
        await world.clock.sleep(AGAIN_SECONDS - 1)
        refusals.note(refused())  # type: ignore[arg-type]
        await world.clock.sleep(2)
        refusals.note(refused())  # type: ignore[arg-type]

    run_virtual(scenario)
    words = "patch pods in the namespace shop"
    assert told == [(words, 1), (words, 5)]


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (
            403,
            "Forbidden",
            'pods "a" is forbidden: exceeded quota: some, requested: pods=1, used: pods=4, limited: pods=4',
        ),
        (409, "Conflict", "the object has been modified"),
        (401, "Unauthorized", "Unauthorized"),
    ],
)
def test_what_is_refused_for_another_reason_is_no_missing_right(code: int, reason: str, message: str) -> None:
    async def scenario(world: World) -> None:
        refusals = Refusals(world, lambda *told: pytest.fail(str(told)))
        refusals.note(status_failure(code, reason, message))

    run_virtual(scenario)


def test_rights_without_number_take_no_memory_without_end() -> None:
    told: list[Right] = []

    async def scenario(world: World) -> None:
        refusals = Refusals(world, lambda right, count: told.append(right))
        for number in range(MOST + 100):
            refusals.note(refused(namespace=f"n{number}"))  # type: ignore[arg-type]

    run_virtual(scenario)
    assert len(told) == MOST
