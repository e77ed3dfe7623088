"""One experiment of the tour after the other: what every browser sees, and that nothing stays when the page ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lastcall.records.said import tell
from lastcall.ui.tour.experiments import EXPERIMENTS, Experiment
from lastcall.ui.tour.levels import experiment_of, levels
from lastcall.ui.tour.running import Run, TourError
from lastcall.world.tasks import Background

if TYPE_CHECKING:
    from lastcall.ui.watching import Watching


class Turns:
    """`end` it before the cluster's client is closed. What a run shows stays on the board as `tour/EXPERIMENT`."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._run: Run | None = None
        self._tasks: list[Background] = []

    def start(self, experiment: str) -> None:
        """Start an experiment.

        Raises LookupError when there is no such experiment, and TourError while another one runs. One that only takes
        its namespace away is not waited for.
        """
        self._start(EXPERIMENTS[experiment])

    def start_level(self, level: str, manifest: str, grace: int | None, guess: int | None) -> None:
        """Start a level with the learner's manifest and guess, shown as `tour/level-LEVEL`. Raises BadManifest, too."""
        self._start(experiment_of(levels()[level], manifest, grace, guess))

    def _start(self, wanted: Experiment) -> None:
        if self._run is not None and not self._run.over:
            raise TourError(tell("another step is running: wait until it ends, or stop it"))
        client = self._watching.client
        if client is None:
            raise TourError(tell("the cluster is not running"))
        self._run = Run(wanted, client, self._watching.world, self._watching.ending, self._show)
        self._tasks = [each for each in self._tasks if not each.ended]
        self._tasks.append(Background(self._run.run(), name="tour"))

    def _show(self, run: dict[str, Any]) -> None:
        self._watching.board.put(f"tour/{run['experiment']}", run)

    async def end(self) -> None:
        """Stop what runs, and take away what it has made."""
        for task in self._tasks:
            await task.end()
