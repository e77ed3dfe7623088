"""`--keep-on-failure` of `lastcall rollout`: the cluster of an experiment that failed stays until Ctrl-C."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from lastcall.cli.interrupts import Interrupts
from lastcall.cli.started import stay
from lastcall.errors import LastcallError

if TYPE_CHECKING:
    from lastcall.experiment.rollout import Result


def has_failed(result: "Result") -> bool:
    """Whether its cluster is worth to be looked at."""
    return result.judgement.verdict != "nothing lost" or result.crashed


async def kept_on_failure(
    experiment: "Awaitable[Result]",
    kubeconfig: Callable[[], str],
    say: Callable[[str], None],
    is_dead: Callable[[], bool],
    interrupts: Interrupts,
) -> "Result":
    """What the experiment found, or raises, after somebody has looked at what is left of it."""
    try:
        result = await experiment
    except LastcallError as error:
        if not is_dead():
            await _stay(str(error), kubeconfig(), say, interrupts)
        raise
    if has_failed(result):
        await _stay(result.judgement.sentence, kubeconfig(), say, interrupts)
    return result


async def _stay(why: str, kubeconfig: str, say: Callable[[str], None], interrupts: Interrupts) -> None:
    """Until the first signal, which is the way to end it: no error."""
    for line in why.splitlines():
        say(line)
    say(f"The cluster stays up until Ctrl-C: kubectl --kubeconfig {kubeconfig} get pods -A")
    await stay(asyncio.Event().wait(), interrupts)
