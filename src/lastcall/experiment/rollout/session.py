"""One experiment of `lastcall rollout`: prepare, control period, disrupt under load, settle, account, restore."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from lastcall.experiment.ready.views import LOOK_SECONDS
from lastcall.experiment.rollout.old_pods import is_of_a_request
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.target import never_heard, not_served, serving_container
from lastcall.experiment.rollout.workspace import Experiment, Observed, Sending
from lastcall.kube.api import name_of
from lastcall.records.record import Record
from lastcall.records.said import tell
from lastcall.traffic import Control, Judgement, asks_the_application, judge
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks


@dataclass(slots=True)
class RolloutSession(Experiment):
    """`run` once, wherever the workspace is."""

    async def run(self) -> Result:
        """Run it. Raises UserError, WorldError, ClusterStartError, and StatusError of a cluster of our own."""
        try:
            return await self.workspace.alive(self._run())
        finally:
            await self.workspace.restore(self.say)

    async def _run(self) -> Result:
        await self.workspace.prepare(self)
        if self.before_load is not None:
            await self.before_load()
        return await self.measured(self._disturb)

    async def measured(self, disturb: Callable[[], Awaitable[float]]) -> Result:
        """Send requests, and `disturb` once they have shown enough: it returns the seconds that it took. Return what
        became of them. In a run the Pods end in any case."""
        async with AsyncExitStack() as stack, Tasks() as tasks:
            load = await self.workspace.send(self, stack, tasks)
            collecting = tasks.spawn(self._collect(load), name="outcomes")
            self.unheard = await self._control()
            self.begin()
            seconds = await disturb() if self.unheard is None or self.of_run else 0.0
            load.stop()
            await collecting
            await self.workspace.settle(self)
            tasks.cancel()
        seen = await self.workspace.observe(self, load)
        return self._result(seen, await self._judged(seen), seconds)

    def printed(self, record: Record) -> bool:
        """Return whether the record is a line that a Pod printed about a request."""
        return is_of_a_request(record)

    def begin(self) -> None:
        """Count from now on."""
        self.moment = monotonic(self.clock)
        self.workspace.begin(self)

    async def _collect(self, load: Sending) -> None:
        async for outcome in load.outcomes():
            self.outcomes.append(outcome)

    async def _control(self) -> Judgement | None:
        """Requests before anything is disrupted. None when they have shown enough, else why they never will."""
        container = serving_container(self.owner["spec"]["template"]["spec"], self.target.container_port)
        probed = asks_the_application(container, self.target.container_port)
        control = Control(monotonic(self.clock), self.options.control, probed)
        await self.clock.sleep(self.options.control)
        while (decision := control.decide(self.outcomes, at := monotonic(self.clock))) == "wait":
            self.show(at, at - control.began, self.workspace.silence)
            await self.clock.sleep(LOOK_SECONDS)
        if misled := self.workspace.misled(self):
            return misled
        if decision == "go":
            return not_served(self.outcomes, self.options.load)
        return never_heard(self.outcomes, monotonic(self.clock) - control.began, self.target, container)

    async def _disturb(self) -> float:
        """Disrupt, and send on until the rules have settled. Return how many seconds the disruption took."""
        what, there = self.options.disrupt, self.of()
        self.began = self.moment
        self.say(tell("$disruption begins", disruption=what))
        self.node = await self.workspace.disturb(self)
        self.stranded = await self.waiting(there).until(
            there.over, f"the {what} to be over", may_strand=what == "drain"
        )
        seconds = monotonic(self.clock) - self.moment
        if self.node:
            what = tell("$disruption of $node", disruption=what, node=self.node)
        self.say(tell("$disruption is over; the last requests", disruption=what))
        await self.clock.sleep(self.options.propagation.most + self.options.settle)
        return seconds

    async def _judged(self, seen: Observed) -> Judgement:
        if self.unheard is not None:
            return self.unheard
        if not seen.account.lost and (nothing := not_served(self.outcomes, self.options.load)):
            return nothing
        found = judge(
            seen.account,
            seen.bounded,
            self.owner,
            self.target.container_port,
            sleep_hooks=self.options.sleep_hooks,
            longest_lag=self.options.propagation.most_to(self.options.source),
            disrupt=self.options.disrupt,
            path=self.options.load.path,
        )
        return await self.workspace.check(self, found)

    def _result(self, seen: Observed, judgement: Judgement, seconds: float) -> Result:
        return Result(
            account=seen.account,
            judgement=judgement,
            lives=seen.lives,
            outcomes=self.outcomes,
            owner=self.owner,
            what=f"{self.target.workload.resource.kind} {name_of(self.owner)}",
            service=name_of(self.service),
            disrupt=self.options.disrupt,
            propagation=self.options.propagation.text,
            source=self.options.source,
            began=self.moment,
            seconds=seconds,
            over=max([self.moment + seconds, *seen.changed]),
            node=self.node,
            nodes=self.options.nodes,
            unheard=self.unheard is not None,
            notes=seen.notes,
            cluster=self.workspace.about(self),
            of_run=self.of_run,
        )
