"""One trace: connect, follow, tell each end as it comes, and at the end what was asked for as a document."""

# check: many attributes _Trace because it waits for the one session of all commands

import asyncio
from collections import Counter, deque
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from lastcall.cli import output
from lastcall.cli.console import CommandConsole
from lastcall.cli.exit_status import WORLD, exit_status
from lastcall.cli.options import asked_for_one_line
from lastcall.cli.output import stdout_console, takes_stdout
from lastcall.cli.terminal import note, say, show
from lastcall.contexts import connected
from lastcall.endings import Ending, lives_on, outcome_words
from lastcall.endings.render import TICK_SECONDS, LiveTimeline
from lastcall.errors import UserError, WorldError
from lastcall.kube.api import StatusError, parse_label_selector
from lastcall.records.record import Record
from lastcall.trace import Follower, Options, Scope, ScopeError, target_of
from lastcall.world.clock import monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.interrupts import Interrupts
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.cli.trace.audit import TraceAudit
    from lastcall.cli.trace.audit_options import AuditSource
    from lastcall.cli.trace.page import TracePage
    from lastcall.contexts import Chosen, Connected
    from lastcall.trace.node_agent import AgentOptions, NodeAgents
    from lastcall.ui import AskedPage

MOST_TOGETHER = 1000
"""Stories that a document at the end may have: the latest ones."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    targets: tuple[str, ...]
    all_namespaces: bool
    selector: str
    logs: bool
    audit: "AuditSource"
    count: int
    timeout: float | None
    agents: "AgentOptions | None"
    output: str
    output_file: Path | None
    explain: bool
    page: "AskedPage | None" = None

    @property
    def as_lines(self) -> bool:
        """Return whether each story is a line of JSON when its Pod has ended."""
        return self.output == "json" and self.output_file is None and asked_for_one_line()


def run_trace(chosen: "Chosen", asked: Asked) -> int:
    """Follow until the end that was asked for; the exit status. Raises LastcallError."""
    scope = scope_of(asked, chosen.namespace)
    with Interrupts(message="the trace has ended") as interrupts:
        return asyncio.run(_run(chosen, asked, scope, interrupts))


def scope_of(asked: Asked, namespace: str) -> Scope:
    """Return the scope. Raises UserError for a target or a selector that is wrong."""
    try:
        if asked.selector:
            parse_label_selector(asked.selector)
        targets = tuple(target_of(each) for each in asked.targets)
    except ScopeError as error:
        raise UserError(str(error)) from error
    except StatusError as error:
        raise UserError(f"--selector {asked.selector!r}: {error.message}") from error
    return Scope("" if asked.all_namespaces else namespace, asked.selector, targets)


async def _run(chosen: "Chosen", asked: Asked, scope: Scope, interrupts: Interrupts) -> int:
    world = World()
    ends = None if asked.timeout is None else monotonic(world.clock) + asked.timeout
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(asked.timeout):
                there = await stack.enter_async_context(connected(chosen, agent="lastcall-trace", warn=note))
        except TimeoutError:
            raise too_slow(chosen, asked, "the API server has not answered") from None
        try:
            return await _Trace(asked, scope, there, interrupts, world, ends).run()
        finally:
            interrupts.on_first = None


def too_slow(chosen: "Chosen", asked: Asked, what: str) -> WorldError:
    """Return the error of a trace that has seen nothing when its time is over."""
    within = f"within --timeout {asked.timeout:g}s"
    fix = "raise --timeout, or check that this is the right server"
    return WorldError(f"context {chosen.context!r} ({chosen.server}): {what} {within}; fix: {fix}")


class _Trace:
    def __init__(
        self,
        asked: Asked,
        scope: Scope,
        there: "Connected",
        interrupts: Interrupts,
        world: World,
        ends: float | None,
    ) -> None:
        """`ends` is when the time of --timeout is over, by the clock of `world`; None: never."""
        self._asked = asked
        self._scope = scope
        self._server = there.chosen.server
        self._version = ".".join(there.version.removeprefix("v").split(".")[:2])
        self._git_version = there.version
        self._interrupts = interrupts
        self._world = world
        self._ends = ends
        self._chosen = there.chosen
        progress = CommandConsole(stderr=True)
        self._out = stdout_console()
        on_stderr = takes_stdout(asked.output, asked.output_file)
        self._live = LiveTimeline(progress if on_stderr else self._out, progress, asked.explain)
        self._kept: deque[Ending] = deque(maxlen=MOST_TOGETHER)
        self._outcomes: Counter[str] = Counter()
        self._restarts = 0
        self._agents = self._node_agents(there, asked.agents) if asked.agents is not None else None
        self._audit = self._made_audit() if asked.audit else None
        self._page = self._made_page(there, asked.page) if asked.page is not None else None
        self._follower = Follower(
            there.client,
            scope,
            world=self._world,
            kubernetes_version=self._version,
            options=Options(
                logs=asked.logs,
                count=asked.count,
                restarts=True,
                audit_wait=0.0 if self._audit is None else self._audit.seconds,
            ),
            audit=self._audit.index if self._audit is not None else None,
            on_record=self._record,
            on_begin=self._live.add,
            on_note=self._live.note,
            node_side=self._agents,
            on_object=self._page.source.object if self._page is not None else None,
        )

    def _made_page(self, there: "Connected", asked: "AskedPage") -> "TracePage":
        # late: only with --ui
        from lastcall.cli.trace.page import TracePage

        chosen = there.chosen
        facts = {"name": chosen.context, "server": chosen.server, "kubernetesVersion": self._version}
        return TracePage(
            asked, facts, there.client, self._world, lambda uid: self._follower.story_of(uid), self._live.note
        )

    def _made_audit(self) -> "TraceAudit":
        # late: only with an audit log
        from lastcall.cli.trace.audit import TraceAudit

        return TraceAudit(self._asked.audit, self._world, self._live.note)

    def _node_agents(self, there: "Connected", asked: "AgentOptions") -> "NodeAgents":
        # late: only with --node-agent
        from lastcall.trace.node_agent import NodeAgents

        return NodeAgents(
            there.client,
            asked,
            namespace=there.chosen.namespace,
            on_record=lambda record: self._follower.add(record),
            on_note=self._live.note,
            world=self._world,
        )

    async def run(self) -> int:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(self._follower.stop)

        self._interrupts.on_first = stop
        if self._interrupts.number:
            self._follower.stop()
        self._live.begin([], named=True)
        going_on: list[Ending] = []
        try:
            async with Tasks() as tasks:
                if self._agents is not None:
                    self._agents.start(tasks)
                tasks.spawn(self._follower.run(), name="trace")
                tasks.spawn(self._tick(), name="live timeline")
                tasks.spawn(self._greet(), name="first list")
                tasks.spawn(self._limit(), name="timeout")
                if self._page is not None:
                    tasks.spawn(self._page.run(), name="page")
                if self._audit is not None:
                    tasks.spawn(self._audit.run(), name="audit log")
                async for ending in self._follower.endings():
                    self._tell(ending)
                going_on = self._follower.ongoing()
                if self._page is not None:
                    await self._page.end()
                tasks.cancel()
        finally:
            if self._agents is not None:
                await self._agents.close()
            self._live.end()
        if self._follower.failure is not None:
            raise self._follower.failure
        if self._is_over() and not self._follower.is_synced:
            raise too_slow(self._chosen, self._asked, "its Pods could not be listed")
        return self._finish(going_on)

    async def _greet(self) -> None:
        await self._follower.synced()
        if self._follower.failure is not None:
            return
        if commands := self._follower.commands():
            self._live.note("fix, as an administrator:")
            for command in commands:
                self._live.note(f"  {command}")
        what, count = self._named(), self._follower.following()
        waits = f"waiting for the end of {what}" if what else f"following {count} Pods"
        if what and not count:
            waits = f"{self._nobody()} is there yet: waiting for it, and for its end"
        where = f"{self._server} (Kubernetes {self._git_version}), {self._where()}"
        self._live.note(f"{where}: {waits}; Ctrl-C ends trace, not the Pods")

    def _where(self) -> str:
        return f"namespace {self._scope.namespace}" if self._scope.namespace else "all namespaces"

    def _named(self) -> str:
        """What was asked for by name, "" for all Pods."""
        return ", ".join(f"{each.kind} {each.name}" for each in self._scope.targets)

    def _nobody(self) -> str:
        return f"no {'' if self._scope.only_pods else 'Pod of '}{self._named()}"

    def _missed(self) -> str:
        """What was asked for by name, and was not seen to end when the time was over; "" for nothing."""
        if not self._named() or not self._is_over() or self._kept:
            return ""
        within = f"within --timeout {self._asked.timeout:g}s"
        if self._follower.following():
            return f"{self._named()} did not end {within}; fix: raise --timeout, or delete it while lastcall trace runs"
        return f"{self._nobody()} was there in {self._where()} {within}; fix: check the name and the namespace (-n, -A)"

    def _is_over(self) -> bool:
        return self._ends is not None and monotonic(self._world.clock) >= self._ends

    async def _limit(self) -> None:
        """End the trace when its time is over, whatever it has seen by then."""
        if self._ends is not None:
            await self._world.clock.sleep(max(0.0, self._ends - monotonic(self._world.clock)))
            self._follower.stop()

    async def _tick(self) -> None:
        while True:
            await self._world.clock.sleep(TICK_SECONDS)
            self._live.tick(self._world.clock.monotonic_ns())

    def _record(self, record: Record) -> None:
        self._live.record(record)
        if self._page is not None:
            self._page.source.record(record)

    def _tell(self, ending: Ending) -> None:
        self._kept.append(ending)
        if lives_on(ending):
            self._restarts += 1
        else:
            self._outcomes[outcome_words(ending)] += 1
            self._live.forget(ending.pod.uid)
            if self._page is not None:
                self._page.watching.keep_story(ending)
        if self._asked.as_lines:
            show(self._document([ending]))
        elif not takes_stdout(self._asked.output, self._asked.output_file):
            output.tell(
                self._out,
                [ending],
                "text",
                None,
                kubernetes_version=self._version,
                status=0,
                explain=self._asked.explain,
                seen_live=True,
            )

    def _document(self, endings: list[Ending], missed: str = "") -> str:
        return output.document(
            endings,
            self._asked.output,
            kubernetes_version=self._version,
            status=WORLD if missed else exit_status(endings),
            error=missed,
            explain=self._asked.explain,
            width=self._out.width,
            context=self._chosen.context,
        )

    def _finish(self, going_on: list[Ending]) -> int:
        """What was asked for as a document, what is still going on, and how many ended how."""
        asked, kept, missed = self._asked, list(self._kept), self._missed()
        if asked.output_file is not None:
            output.write_file(asked.output_file, self._document(kept, missed))
            say(f"Report written to {asked.output_file}", err=True)
        elif takes_stdout(asked.output, None) and not asked.as_lines:
            show(self._document(kept, missed))
        for ending in going_on[:20]:
            pod = ending.pod
            self._live.note(f"still ending: {pod.namespace}/{pod.name} {outcome_words(ending)}")
        if len(going_on) > 20:
            self._live.note(f"still ending: {len(going_on) - 20} more")
        total = self._follower.yielded
        if total + self._restarts > len(kept):
            self._live.note(f"the report has the {len(kept)} latest of {total + self._restarts} stories")
        outcomes = ", ".join(f"{count} {words}" for words, count in self._outcomes.most_common())
        self._live.note(f"{total} Pod{'' if total == 1 else 's'} ended{f': {outcomes}' if outcomes else ''}")
        if self._audit is not None:
            self._live.note(f"audit log: {self._audit.summary()}")
        if self._restarts:
            self._live.note(f"{self._restarts} restart{'' if self._restarts == 1 else 's'} in Pods that live on")
        if missed:
            raise WorldError(missed)
        return exit_status(kept)
