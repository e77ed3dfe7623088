"""A virtual cluster that stands still between steps, for tests that decide the next step by what they see."""

import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from virtual_cluster import VirtualCluster, run_cluster

Step = Callable[[VirtualCluster], Awaitable[Any]]

LIMIT = 120
"""Real seconds after which a step that has not ended is an error."""


class SteppedCluster:
    """`run(step)` lets the world go on until the coroutine function has returned; `close()` ends it.

    The world has a thread of its own, which waits while the other one thinks: at no time do both run. An exception of
    a step is raised by `run`, as is that of a component that ends; after either the world is gone.
    """

    def __init__(self, programs: Any, **options: Any) -> None:
        self._steps: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._live, args=(programs, options), daemon=True)
        self._thread.start()
        self.cluster: VirtualCluster = self._answer()

    def run(self, step: Step) -> Any:
        self._steps.put(step)
        return self._answer()

    def close(self) -> None:
        self._steps.put(None)
        self._thread.join(LIMIT)
        assert not self._thread.is_alive(), "the world does not end"

    def _answer(self) -> Any:
        answer, error = self._answers.get(timeout=LIMIT)
        if error is not None:
            raise error
        return answer

    def _live(self, programs: Any, options: dict[str, Any]) -> None:
        async def scenario(cluster: VirtualCluster) -> None:
            self._answers.put((cluster, None))
            while (step := self._steps.get()) is not None:
                answer = await step(cluster)
                self._answers.put((answer, None))

        try:
            run_cluster(scenario, programs, **options)
        except BaseException as error:  # whatever it was, the other thread waits for it
            self._answers.put((None, error))
