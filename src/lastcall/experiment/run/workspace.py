"""Where a run takes place: what a session and its workspace share."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

from lastcall.endings import Ending
from lastcall.endings.render import LiveTimeline
from lastcall.errors import LastcallError
from lastcall.experiment.reasons.owner_watch import OwnerFollower
from lastcall.experiment.reasons.pod_watch import FollowedPod, PodFollower
from lastcall.experiment.run.options import RunOptions
from lastcall.experiment.workspace import Workspace
from lastcall.kube.api import Object
from lastcall.manifests import Applied, Manifest
from lastcall.records.record import Recorder
from lastcall.world.clock import Clock, RealClock, monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks

if TYPE_CHECKING:
    from lastcall.experiment.rollout.session import RolloutSession

Tell = Callable[[Sequence[Ending], LastcallError | None], None]
"""Takes the stories, and the error that cut them short, if one did."""


class RunWorkspace(Workspace):
    """A cluster of our own (`embedded.py`), or a namespace of a context (`existing/run.py`).

    `patience` is that of `ready/waiting.py:Waiting`.
    """

    __slots__ = ()
    patience: ClassVar[float] = 0.0

    @property
    def namespace(self) -> str:
        """Return where Pods and their owners are watched, "" for everywhere."""
        return ""

    @abstractmethod
    async def prepare(self, now: "Run") -> tuple[list[Applied], str]:
        """Create the objects. Return them, and the resourceVersion from which to watch them, "" to list them first."""

    @abstractmethod
    def recorder(self) -> Recorder:
        """Return what takes what the session sees of Pods."""

    async def drain(self) -> None:
        """Return when the records of what has happened are here."""

    @abstractmethod
    def is_left_out(self, pod: FollowedPod) -> bool:
        """Return whether a Pod has no part in the story: when all is Ready, before anything is disturbed."""

    async def attend(self, now: "Run") -> None:
        """Begin to hear of the ends of `now.chosen()`."""

    @abstractmethod
    async def disturb(self, now: "Run") -> None:
        """End the Pods."""

    @abstractmethod
    async def follow(self, now: "Run") -> None:
        """Return when the Pods have ended. Raises WorldError where one has not in time."""

    @abstractmethod
    def stories(self, now: "Run") -> list[Ending]:
        """Return how the Pods ended, as far as it is known."""


@dataclass(slots=True)
class Run:
    """One run while it is made. `pods` and `owners` are followed from the moment that they are created."""

    place: RunWorkspace
    manifests: Sequence[Manifest]
    options: RunOptions
    live: LiveTimeline
    tell: Tell = lambda endings, error: None
    clock: Clock = field(default_factory=RealClock)
    requests: "RolloutSession | None" = None
    """Sends requests meanwhile, as a rollout does; its workspace joins the run."""
    before_end: Callable[[], Awaitable[None]] | None = None
    """Awaited when all is Ready, before anything is ended."""
    left_alone: bool = False
    """Nothing was ended because a Pod was not well and `keep_on_failure` was asked for."""
    pods: PodFollower = field(init=False)
    owners: OwnerFollower = field(init=False)
    tasks: Tasks = field(init=False)
    began: float = 0.0
    left_out: set[str] = field(default_factory=set)
    """Uids of Pods that have no part in the story."""

    def chosen(self) -> list[FollowedPod]:
        """Return the Pods of the story."""
        return [pod for pod in self.pods.pods.values() if pod.uid not in self.left_out]

    def note(self, text: str) -> None:
        """Show a line on how far we are."""
        self.live.note(f"{monotonic(self.clock) - self.began:7.3f}s  {text}")


def longest_grace(objects: Iterable[Object], asked: int | None) -> float:
    """Return the seconds that the longest of these Pods, or owners of Pods, may take to stop; 2 s are the kubelet's
    least. (`kuberuntime_container.go:minimumGracePeriodInSeconds`)"""
    if asked is not None:
        return max(2.0, float(asked))
    specs: Sequence[Object] = [each.get("spec") or {} for each in objects]
    specs = [each["template"].get("spec") or {} if "template" in each else each for each in specs]
    return max([2.0, *(float(each.get("terminationGracePeriodSeconds", 30)) for each in specs)])
