"""Serve the live page of `lastcall rollout --ui`: send it each experiment, and take what its user wants of the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, field
from functools import partial
from typing import Any, Protocol

from lastcall.cli.rollout.followed_page import FollowedFeed
from lastcall.experiment.existing import ExistingWorkspace
from lastcall.experiment.rollout import (
    EmbeddedWorkspace,
    Found,
    Result,
    RolloutOptions,
    RolloutSession,
    Target,
    find_safe_report,
    yaml_lines,
)
from lastcall.kube.api import name_of, namespace_of
from lastcall.kube.cluster import HOPS, Running
from lastcall.records.said import tell
from lastcall.traffic import Outcome, serving_containers
from lastcall.ui import AskedPage
from lastcall.ui.command_page import TURN_SECONDS, Again, Outcomes, PageLink, Rollout, Setup
from lastcall.ui.rollout import account_to_wire, state_to_wire
from lastcall.world.blocking import monotonic, sleep
from lastcall.world.dataclass import dataclass
from lastcall.world.interrupts import Interrupts

_FOR_FORECASTS = ("disrupt", "workload", "service", "port", "source", "kubernetes_version")
ALONE_SECONDS = 5.0
"""A page that nobody has looked at for so long is not waited for: a browser that loads it again is back by then."""


class Session(Protocol):
    """An experiment while it is made: `began` is the moment of the disruption, `foreign` are Pods of others."""

    began: float | None
    foreign: set[str]
    outcomes: list[Outcome]


@dataclass(slots=True)
class RolloutPage:
    """Of all experiments of a command, of which it makes `of` unasked. `start` or `start_on_existing` after the roles
    of the first cluster were forked; `close` at the end."""

    asked: AskedPage
    of: int = 1
    link: PageLink | None = None
    _state: dict[str, Any] = field(default_factory=dict)
    _last_sent: dict[str, Any] = field(default_factory=dict)
    _search: dict[str, Any] | None = None
    _why: str = ""
    """Why another experiment is made: `advice`, `search`, `page`; "" for one that was asked for at the start."""
    _number: int = 0
    _sent: int = 0
    _session: Session | None = None
    _workload: Mapping[str, Any] = field(default_factory=dict)
    _context: str = ""
    _feed: FollowedFeed | None = None
    _runs: list[dict[str, Any]] = field(default_factory=list)

    # -- an experiment begins -----------------------------------------------------------------------------------------

    def start(self, place: EmbeddedWorkspace, session: RolloutSession) -> None:
        """Start the page of an experiment on a cluster of lastcall."""
        cluster = place.cluster
        assert isinstance(cluster, Running)  # virtual time has no page
        link, options = self._linked(session.say), session.options
        cluster.on_record(link.record)
        link.cluster("lastcall rollout", options.kubernetes_version, cluster.kubeconfig_path())
        setup = {**{each: getattr(options, each) for each in _FOR_FORECASTS}, "load": asdict(options.load)}
        link.tell(Setup(manifests=[each.obj for each in place.manifests], options=setup))
        self._begin(session, options, place.target)
        session.before_load = partial(link.somebody_looks, session.clock, "the first requests are sent")

    def start_on_existing(
        self,
        asked: dict[str, Any],
        place: ExistingWorkspace,
        session: RolloutSession,
        say: Callable[[str], None],
        stack: ExitStack,
    ) -> None:
        """Start the page of an experiment on the cluster that `asked` names.

        The page is there when it is allowed; `stack` ends with it. `say` is for the terminal alone: links are said by
        it.
        """

        async def begin() -> None:
            cluster = place.cluster
            link = self._linked(say)
            link.cluster(cluster.where, cluster.version.removeprefix("v"), "", asked)
            self._context, self._feed = cluster.context, FollowedFeed(link, place, session)
            self._begin(session, session.options, session.target)
            back = f"lastcall rollout --from-cluster {place.asked} --context {cluster.context} -n {cluster.namespace}"
            self._state["theirs"] = {"context": cluster.context, "here": f"{back} --ui"}
            self.turning(stack)
            await link.somebody_looks(session.clock, "the first requests are sent")

        session.before_load = begin

    def _linked(self, say: Callable[[str], None]) -> PageLink:
        if self.link is None:
            self.link = PageLink(self.asked, "lastcall rollout", say)
        self.link.say = say
        return self.link

    def _begin(self, session: Session, options: RolloutOptions, target: Target) -> None:
        plan, workload = options.propagation, target.workload
        port, names = serving_containers(workload.obj["spec"]["template"]["spec"], target.container_port)
        self._session, self._sent, self._workload = session, 0, workload.obj
        self._number += 1
        self._state = {
            "number": self._number,
            "of": self.of,
            "why": "search" if options.find_safe and not self._why else self._why,
            "what": f"{workload.resource.kind} {name_of(workload.obj)}",
            "service": name_of(target.service.obj),
            "disrupt": options.disrupt,
            "source": options.source,
            "rates": list(options.load.rates),
            "workload": workload.obj,
            "hops": {hop: plan.of(hop).most for hop in HOPS},
            "delayed": plan.most_to(options.source),
            "sleepHooks": options.sleep_hooks,
            "port": port,
            "containers": sorted(names),
            "runs": self._runs,
            "search": self._search,
        }

    # -- while it goes on ---------------------------------------------------------------------------------------------

    def turning(self, stack: ExitStack) -> None:
        """Tell what is new, by the running loop, until the block ends."""
        assert self.link is not None
        self.link.before_turn = self._tell
        stack.enter_context(self.link.turning())

    def said_by(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """Return a `say` that tells the page, too, how far the experiment is."""

        def both(text: str) -> None:
            self._state["phase"] = text
            say(text)

        return both

    def wait_for_terminal(self, context: str) -> None:
        """Show on the page that the terminal waits for the user. The loop does not run meanwhile."""
        if self.link is not None:
            self._state["phase"] = tell(
                "type the name of the context ($context) in the terminal to go on", context=context
            )
            self._tell()
            self.link.turn()

    def _tell(self) -> None:
        session, link = self._session, self.link
        if link is None:
            return
        if session is not None:
            self._state |= {"began": session.began, "foreign": sorted(session.foreign)}
            if self._feed is not None:
                self._state |= self._feed.state()
        if self._state != self._last_sent:
            self._last_sent = {**self._state}
            link.tell(Rollout(state=state_to_wire(self._last_sent)))
        if session is not None and len(session.outcomes) > self._sent:
            those = session.outcomes[self._sent :]
            self._sent += len(those)
            link.tell(Outcomes(outcomes=[each.to_wire() for each in those]))

    # -- what it found ------------------------------------------------------------------------------------------------

    def found(self, result: Result) -> None:
        """Show the verdict: its requests are over, its cluster may stay for a while."""
        judgement, workload = result.judgement, self._workload
        self._state |= {"over": True, "phase": ""}
        self._state |= {"verdict": judgement.verdict, "sentence": judgement.sentence, "patch": judgement.patch}
        if judgement.patch:
            name = f"{workload['kind'].lower()} {name_of(workload)} -n {namespace_of(workload)}"
            there = f" --context {self._context}" if self._context else ""
            self._state |= {
                "patchText": "\n".join(yaml_lines(judgement.patch)),
                "command": f"kubectl patch {name}{there} --patch-file patch.yaml",
            }
        found = result.account
        self._state["account"] = account_to_wire(found)
        run = {"verdict": judgement.verdict, "lost": len(found.lost), "total": found.total}
        why = self._state.get("why", "")
        self._runs = [*self._runs, {**run, "propagation": result.propagation, "why": why}]
        self._state["runs"] = self._runs
        self._tell()

    def over(self, error: str = "") -> None:
        """Show that it has ended, and with it a cluster that was its own. `error` is why it found nothing."""
        link = self.link
        if link is None:
            return
        self._state |= {"over": True, "error": error, "phase": ""}
        self._tell()
        if self._feed is None:
            link.over()
        else:
            self._feed.end()
        self._session, self._feed = None, None
        link.turn()

    def advised(self, more: int) -> None:
        """Note that `more` experiments come, with the advice applied."""
        self.of, self._why = self.of + more, "advice"

    def searched(self, found: Found, *, done: bool = False) -> None:
        """Show what `--find-safe` has found so far."""
        self._search = {**find_safe_report.as_json(found), "done": done}
        self._state["search"] = self._search
        self._tell()
        if self.link is not None:
            self.link.turn()

    # -- what its user wants ------------------------------------------------------------------------------------------

    def next(self) -> Again | None:
        """Return what its user wants, while a browser shows it; None when none does any more, or after a signal."""
        link = self.link
        if link is None:
            return None
        self._why = "page"
        self._state["idle"] = True
        self._tell()
        link.turn()
        link.again = None
        if link.browsers:
            what = "run it again" if self._context else "predict, and run it again"
            link.say(f"the page is open: it can {what}; Ctrl-C, or closing the page, ends it")
        with Interrupts(message="the page is closed") as interrupts:
            alone = monotonic()
            while link.again is None and not interrupts.number:
                link.turn()
                if link.browsers:
                    alone = monotonic()
                elif monotonic() - alone > ALONE_SECONDS or not link.seen:
                    return None
                sleep(TURN_SECONDS)
        found, link.again = link.again, None
        if found is not None:
            self._state["idle"] = False
        return found

    def close(self) -> None:
        """Let it say goodbye to its browsers."""
        if self.link is not None:
            self.link.close(staying=bool(self._context))
