"""A cluster of `lastcall rollout` that stays because something failed, until Ctrl-C."""

import asyncio
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lastcall.cli.rollout.keep import kept_on_failure
from lastcall.errors import WorldError
from lastcall.experiment.workspace import Workspace
from lastcall.kube.client import Client
from lastcall.world.interrupts import Interrupts


def result(verdict: str, crashed: bool = False) -> Any:
    judgement = SimpleNamespace(verdict=verdict, sentence="3 of 90 requests were lost")
    return SimpleNamespace(judgement=judgement, crashed=crashed)


class Place(Workspace):
    """Where an experiment took place; `death` says how a process of its cluster ended."""

    @property
    def client(self) -> Client:
        raise NotImplementedError

    async def restore(self, say: Callable[[str], None]) -> None:
        return

    async def error(self, found: Exception) -> Exception:
        return found


async def kept(outcome: Any, death: str = "") -> tuple[Any, list[str]]:
    """Its answer, or the error, and what was said; Ctrl-C comes when the kubeconfig is asked for."""
    said: list[str] = []

    async def experiment() -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with Interrupts() as interrupts:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        interrupts.on_first = lambda: loop.call_soon_threadsafe(task.cancel) and None

        def kubeconfig() -> str:
            loop.call_later(0.05, signal.raise_signal, signal.SIGINT)
            return "/proc/1/fd/9"

        try:
            async with asyncio.timeout(60):
                found = await kept_on_failure(
                    experiment(), cast("Any", Place(death=death)), kubeconfig, said.append, interrupts
                )
        except WorldError as error:
            return error, said
        return found, said


def test_what_has_lost_nothing_is_not_kept() -> None:
    good = result("nothing lost")
    assert asyncio.run(kept(good)) == (good, [])


@pytest.mark.parametrize(
    ("verdict", "crashed"), [("requests lost", False), ("inconclusive", False), ("nothing lost", True)]
)
def test_a_cluster_that_lost_requests_or_in_which_something_crashed_stays_until_ctrl_c(
    verdict: str, crashed: bool
) -> None:
    bad = result(verdict, crashed)
    found, said = asyncio.run(kept(bad))
    assert found is bad
    assert said[0] == "3 of 90 requests were lost" and "kubectl --kubeconfig /proc/1/fd/9 get pods -A" in said[-1]


def test_an_error_is_told_before_the_cluster_stays_and_raised_after_it() -> None:
    error = WorldError("default/web is not Ready\n  Event Unhealthy")
    found, said = asyncio.run(kept(error))
    assert found is error and said[:2] == ["default/web is not Ready", "  Event Unhealthy"]


def test_a_cluster_that_has_died_does_not_stay() -> None:
    error = WorldError("the cluster's node-1 was killed")
    assert asyncio.run(kept(error, death=str(error))) == (error, [])
