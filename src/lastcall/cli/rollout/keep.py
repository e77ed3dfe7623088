"""`--keep-on-failure` of `lastcall rollout`: the cluster of an experiment that failed stays until Ctrl-C."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from lastcall.cli.started import stay
from lastcall.errors import LastcallError
from lastcall.world.interrupts import Interrupts

if TYPE_CHECKING:
    from lastcall.experiment.rollout import EmbeddedWorkspace, Result


def has_failed(result: "Result") -> bool:
    """Return whether its cluster is worth a look."""
    return result.judgement.verdict != "nothing lost" or result.crashed


async def kept_on_failure(
    experiment: "Awaitable[Result]",
    place: "EmbeddedWorkspace",
    kubeconfig: Callable[[], str],
    say: Callable[[str], None],
    interrupts: Interrupts,
) -> "Result":
    """Return what the experiment found, or raise, after the user has looked at what is left of it."""

    async def look(why: str) -> None:
        for line in why.splitlines():
            say(line)
        await stay(place, kubeconfig(), say, interrupts)

    try:
        result = await experiment
    except LastcallError as error:
        if not place.death:
            await look(str(error))
        raise
    if has_failed(result):
        await look(result.judgement.sentence)
    return result
