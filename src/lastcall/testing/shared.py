"""One cluster for several processes: the workers of pytest-xdist.

The first that needs it starts it, the others find it; it ends with the controller, which also says when.
"""

from collections.abc import Sequence
from contextlib import suppress

from lastcall.errors import ClusterError
from lastcall.experiment import STOP_SECONDS, ClusterProcess
from lastcall.kube.cluster import (
    ClusterStartError,
    ControlClient,
    ControlError,
    NotRunning,
)
from lastcall.world.blocking import monotonic, sleep

START_SECONDS = 120.0
_AGAIN_SECONDS = 0.1
_STARTED: list[ClusterProcess] = []
"""Those that this process started; kept, so that nobody closes their pipes."""


def start_shared(name: str, controller: int, options: Sequence[str]) -> None:
    """Return when the cluster runs. `controller` is the pid that it ends with. Raises ClusterError."""
    until = monotonic() + START_SECONDS
    while not _runs(name):
        process = ClusterProcess(name, options, die_with=controller)
        try:
            process.start()
            _STARTED.append(process)
        except ClusterStartError as error:
            # Another worker was faster, and its cluster may not be ready yet.
            if "already" not in str(error) or monotonic() > until:
                raise ClusterError(str(error)) from None
            sleep(_AGAIN_SECONDS)


def _runs(name: str) -> bool:
    with suppress(NotRunning, ControlError):
        return ControlClient(name).status().get("phase") == "running"
    return False


def stop_shared(name: str) -> None:
    """End it where it was started."""
    with suppress(NotRunning, ControlError):
        ControlClient(name).stop(STOP_SECONDS)
