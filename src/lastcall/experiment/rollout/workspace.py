"""Where a rollout takes place, and what is known of it meanwhile: what a session and its workspace share."""

import math
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Protocol

from lastcall.endings.render import AboutCluster
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.ready.views import OneWorkload
from lastcall.experiment.ready.waiting import Waiting
from lastcall.experiment.rollout.disruption import Change, Disruption
from lastcall.experiment.rollout.target import Target
from lastcall.experiment.workspace import Workspace
from lastcall.kube.api import Object
from lastcall.manifests import Applied, Manifest
from lastcall.traffic import Account, Judgement, Outcome, PodLife
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions


class Sending(Protocol):
    """A load generator that was started."""

    @property
    def begun(self) -> int | None: ...
    def stop(self) -> None: ...
    def outcomes(self) -> AsyncIterator[Outcome]: ...


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of the requests and the Pods. `bounded` are the lives for the judgement, where they differ from
    `lives`; `changed` are the moments of the last changes of rules."""

    account: Account
    lives: Sequence[PodLife]
    bounded: Sequence[PodLife]
    changed: Sequence[float] = ()
    notes: Sequence[Note] = ()


class RolloutWorkspace(Workspace):
    """A cluster of our own (`embedded.py`), or a namespace of a context (`existing/workspace.py`).

    Every method gets the experiment. `silence` says what one waits for in the control period.
    """

    __slots__ = ()
    silence: ClassVar[str]

    @abstractmethod
    def about(self, now: "Experiment") -> AboutCluster:
        """Return what documents call the cluster."""

    @abstractmethod
    async def prepare(self, now: "Experiment") -> None:
        """Create what is needed, or agree on it; set `target`, `service` and `owner`; return when all is Ready."""

    @abstractmethod
    async def join(self, now: "Experiment", created: Sequence[Applied]) -> None:
        """Do as `prepare` does for what a run has created, whose Pods are Ready."""

    def begin(self, now: "Experiment") -> None:
        """Take note of the moment from which requests count."""

    @abstractmethod
    async def send(self, now: "Experiment", stack: AsyncExitStack, tasks: Tasks) -> Sending:
        """Start requests, and what watches them."""

    @abstractmethod
    async def disturb(self, now: "Experiment") -> str:
        """Disrupt the workload. Return the node that was drained, "" for none."""

    @abstractmethod
    async def settle(self, now: "Experiment") -> None:
        """Return when what is observed has arrived; requests are over."""

    @abstractmethod
    async def observe(self, now: "Experiment", load: Sending) -> Observed:
        """Account for the requests."""

    def misled(self, now: "Experiment") -> Judgement | None:
        """Return why the requests of the control period do not reach the workload, None if they do."""
        return None

    async def check(self, now: "Experiment", judgement: Judgement) -> Judgement:
        """Return the judgement without the patches that the API server refuses, where it may be asked."""
        return judgement

    async def disrupted(self, now: "Experiment", pods: Sequence[Object], change: "Change | None" = None) -> str:
        """Disrupt these Pods, or their workload by `change`. Return the node that was drained, "" for none."""
        disruption = Disruption(
            client=self.client,
            clock=now.clock,
            workload=now.target.workload,
            how=now.options.disrupt,
            timeout=now.options.timeout,
            waiting=lambda waited, text: now.show(monotonic(now.clock), waited, text),
            change=change,
        )
        await disruption.begin(pods)
        return disruption.node


@dataclass(slots=True)
class Experiment:
    """One experiment while it is made. `say` gets how far it is, `show` what is waited for: now, the seconds so far,
    and the words. `prepare` of the workspace sets `target`, `owner` and `service`."""

    workspace: RolloutWorkspace
    options: "RolloutOptions"
    world: World = field(default_factory=World)
    say: Callable[[str], None] = lambda text: None
    show: Callable[[float, float, str], None] = lambda now, waited, text: None
    before_load: Callable[[], Awaitable[None]] | None = None
    """Awaited when all is Ready and allowed, before the first request."""
    target: Target = field(init=False)
    owner: Object = field(init=False)
    service: Object = field(init=False)
    moment: float = 0.0
    """When the disruption began, or would have; seconds of the monotonic clock, as all moments."""
    began: float | None = None
    """The same, None before the disruption."""
    of_run: bool = False
    """The Pods end in any case, all of them, whatever the control period has shown."""
    unheard: Judgement | None = None
    """Why nothing was disrupted."""
    stranded: Sequence[Object] = ()
    node: str = ""
    foreign: set[str] = field(default_factory=set)
    """The uids of Pods of other workloads."""
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def disrupted_at(self) -> float:
        """Return the moment from which losses count; never where nothing was disrupted."""
        return self.moment if self.unheard is None else math.inf

    def of(self, workload: Manifest | None = None) -> OneWorkload:
        """Return how to look at a workload, by default the one of the experiment."""
        return OneWorkload(lambda: self.workspace.client, workload or self.target.workload, self.workspace.records)

    def waiting(self, there: OneWorkload) -> Waiting:
        """Return what waits for a workload."""
        return Waiting(
            there=there,
            clock=self.clock,
            records=self.workspace.records,
            limit=self.options.timeout,
            show=self.show,
            version=self.options.kubernetes_version,
        )
