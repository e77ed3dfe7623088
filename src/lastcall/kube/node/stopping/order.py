"""Who stops after whom: sidecars wait for the regular containers and for the sidecars after them.

Source: kubelet kuberuntime/kuberuntime_termination_order.go. Used only when the spec has a sidecar.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lastcall.kube.node.pods.spec import containers_of, init_containers_of, is_restartable_init_container
from lastcall.kube.node.stopping.waiting import wait_at_most
from lastcall.world.clock import Clock

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod


def prerequisites_of(pod: Pod) -> dict[str, tuple[str, ...]]:
    """Return for each sidecar what must be gone before it is stopped: all regular containers and the next sidecar."""
    regular = tuple(container["name"] for container in containers_of(pod))
    sidecars = [c["name"] for c in init_containers_of(pod) if is_restartable_init_container(c)]
    following = [*sidecars[1:], None]
    return {
        sidecar: (*regular, later) if later else regular for sidecar, later in zip(sidecars, following, strict=True)
    }


class TerminationOrdering:
    """The turns of one termination. Containers not running at its beginning count as gone."""

    def __init__(self, clock: Clock, pod: Pod, running: Iterable[str]) -> None:
        self._clock = clock
        names = dict.fromkeys(running)
        self._prerequisites = {
            name: tuple(each for each in wanted if each in names) for name, wanted in prerequisites_of(pod).items()
        }
        loop = asyncio.get_running_loop()
        self._gone: dict[str, asyncio.Future[None]] = {name: loop.create_future() for name in names}

    async def wait_for_turn(self, name: str, grace_period: int) -> int:
        """Wait until the container's turn has come, at most `grace_period` seconds; return the whole seconds waited."""
        wanted = self._prerequisites.get(name, ())
        if grace_period <= 0 or not wanted:
            return 0
        started = self._clock.monotonic_ns()
        for each in wanted:
            spent = (self._clock.monotonic_ns() - started) / 1e9
            if not await wait_at_most(self._clock, self._gone[each], grace_period - spent):
                break
        return math.floor((self._clock.monotonic_ns() - started) / 1e9)

    def container_terminated(self, name: str) -> None:
        """Let those that wait for this container go on: StopContainer succeeded."""
        gone = self._gone.get(name)
        if gone is not None and not gone.done():
            gone.set_result(None)
