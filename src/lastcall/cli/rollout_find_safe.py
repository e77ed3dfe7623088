"""`lastcall rollout --find-safe`: the largest endpoint lag without a loss, the smallest sleep for a given one.

One run on the kernel tells how the Pods end. Then the same session runs in virtual time (`cluster/virtual.py`: real
controllers, kubelet and proxy, simulated Pods that end as it was measured) to find the edge: evidence `predicted`. It
knows new connections only. Last, runs on the kernel below and above the edge confirm or move it.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from lastcall.api.meta import Object
from lastcall.apiserver.pki import new_key_pem
from lastcall.cli.errors import UserError
from lastcall.cli.manifests import Manifest
from lastcall.cli.rollout_report import FROM
from lastcall.cli.rollout_session import Result, RolloutSession, find_target, with_advice
from lastcall.cluster.propagation import PropagationPlan
from lastcall.traffic.account import WHY
from lastcall.traffic.advice import sleep_patch
from lastcall.traffic.bounds import upper_bound
from lastcall.traffic.find_safe import (
    EdgeSearch,
    MeasuredEnd,
    Trial,
    deaf_seconds,
    last_safe,
    measure_end,
    smallest_grace,
)
from lastcall.world.clock import RealClock, monotonic
from lastcall.world.delays import parse_delay
from lastcall.world.world import World

if TYPE_CHECKING:
    from rich.console import Console

    from lastcall.cli.rollout import RolloutOptions

STEP_SECONDS = 0.1
"""Between two lags that can be tried."""
MOST_SECONDS = 60.0
"""No longer lag is looked for."""
MOST_SLEEP = 120
"""Nor a longer sleep, in seconds."""
ASIDE_REQUESTS = 20.0
"""So many new connections come in the time by which runs stay away from the edge: enough to surely lose one."""
MOST_ASIDE_SECONDS = 1.0
VIRTUAL_RATE = 200.0
"""Simulated requests per second: one every 5 ms."""
BUDGET_SECONDS = 1800.0
"""When so much time is used up, no other run begins."""

Experiment = Callable[[Sequence[Manifest], "RolloutOptions"], Result]


@dataclass(frozen=True, slots=True)
class Edge:
    """What one search found. `value(index)` is seconds; `runs` are those on the kernel, in order."""

    search: EdgeSearch
    value: Callable[[int], float]
    runs: Sequence[Result]

    @property
    def safe(self) -> float | None:
        return None if self.search.safe is None else self.value(self.search.safe)

    @property
    def unsafe(self) -> float | None:
        return None if self.search.unsafe is None else self.value(self.search.unsafe)

    @property
    def predicted(self) -> float | None:
        return self.value(self.search.predicted) if self.search.predicted >= 0 else None


@dataclass(frozen=True, slots=True)
class Found:
    """`lag` is the searched one of the hop, None when the run without any was of no use. `sleep` is the one for a lag
    that was given, `given` seconds of all hops together; `others` are those of the hops that are not searched."""

    measured: Result
    end: MeasuredEnd | None
    hop: str
    lag: Edge | None = None
    sleep: Edge | None = None
    given: float = 0.0
    others: float = 0.0
    propagation: str = ""
    how: str = "in virtual time"
    """The predictions: `in virtual time` or `by a model`."""

    @property
    def runs(self) -> list[Result]:
        """All of them, in order."""
        searched = [run for edge in (self.lag, self.sleep) if edge is not None for run in edge.runs]
        return [self.measured, *searched]

    def grace(self, sleep: float) -> int:
        return smallest_grace(self.end, sleep) if self.end is not None else 0


def find_safe(manifests: Sequence[Manifest], options: "RolloutOptions", experiment: Experiment) -> Found:
    """The whole search. Raises what an experiment raises, and UserError."""
    if options.apply_advice:
        raise UserError("--find-safe and --apply-advice exclude one another: the search tries its own changes")
    return _Search(manifests, options, experiment).run()


class _Search:
    def __init__(self, manifests: Sequence[Manifest], options: "RolloutOptions", experiment: Experiment) -> None:
        self.manifests, self.options, self.experiment = manifests, options, experiment
        self.hop = "balancer" if options.source == "balancer" else "watch"
        self.clock = RealClock()
        self.began = monotonic(self.clock)
        self.longest = 0.0
        self.why_model = ""
        self.key = new_key_pem()

    def run(self) -> Found:
        find_target(self.manifests, self.options)  # bad input before anything is started
        plan = self.options.propagation
        others = with_lag(plan, self.hop, 0.0).most_to(self.hop)
        _say("how do the Pods end? a run on the kernel without endpoint lag")
        measured = self._experiment(self.manifests, replace(self.options, propagation=with_lag(plan, self.hop, 0.0)))
        end = measure_end(measured.lives, others)
        found = Found(measured, end, self.hop, others=others, propagation=plan.text)
        if end is None or measured.judgement.verdict == "inconclusive":
            return found
        found = replace(found, lag=self._lag(measured, end, others))
        if plan.most > 0 and not self._old_version():
            given = plan.most_to(self.hop)
            found = replace(found, given=given, sleep=self._sleep(measured, end, given))
        return replace(found, how=self.how)

    def _lag(self, measured: Result, end: MeasuredEnd, others: float) -> Edge:
        def value(index: int) -> float:
            return round(index * STEP_SECONDS, 3)

        count = round(MOST_SECONDS / STEP_SECONDS) + 1

        def plan_of(index: int) -> PropagationPlan:
            return with_lag(self.options.propagation, self.hop, value(index))

        predicted = self._predict(
            count,
            lambda index: self._virtual(self.manifests, plan_of(index), end),
            lambda index: deaf_seconds(end, value(index) + others) <= 0,
        )
        _say(f"predicted {self.how}: {_prediction(value(predicted) if predicted >= 0 else None, end)}")
        fresh = sum(rate for kind, rate in self.options.rates.items() if kind != "keep-alive")
        aside = min(MOST_ASIDE_SECONDS, ASIDE_REQUESTS / fresh if fresh else MOST_ASIDE_SECONDS)
        known = Trial(0, len(measured.account.lost), measured.account.total)
        margin = max(1, math.ceil(aside / STEP_SECONDS))
        search = EdgeSearch(count, predicted, margin, self.options.confirm, (known,))

        def run(index: int) -> Result:
            return self._experiment(self.manifests, replace(self.options, propagation=plan_of(index)))

        return self._confirm(search, value, run, lambda seconds: f"{seconds:g} s of endpoint lag")

    def _sleep(self, measured: Result, end: MeasuredEnd, given: float) -> Edge:
        def value(index: int) -> float:
            return float(MOST_SLEEP - index)

        count = MOST_SLEEP + 1

        def changed(index: int) -> list[Manifest]:
            patch = sleep_patch(measured.owner, int(value(index)), smallest_grace(end, value(index)))
            return with_advice(self.manifests, measured.owner, patch)

        predicted = self._predict(
            count,
            lambda index: self._virtual(changed(index), self.options.propagation, end),
            lambda index: deaf_seconds(end, given, value(index)) <= 0,
        )
        search = EdgeSearch(count, predicted, 0, self.options.confirm)
        if predicted < 0:
            return Edge(search, value, ())
        _say(f"predicted {self.how} for {given:g} s: a preStop sleep of {value(predicted):g} s")

        def run(index: int) -> Result:
            return self._experiment(changed(index), self.options)

        return self._confirm(search, value, run, lambda seconds: f"a preStop sleep of {seconds:g} s")

    def _predict(self, count: int, virtual: Callable[[int], bool], model: Callable[[int], bool]) -> int:
        """The last index that is safe in virtual time; by the model alone where a virtual cluster cannot tell."""
        if not self.why_model:
            try:
                return last_safe(count, virtual)
            except Exception as error:
                self.why_model = f"{type(error).__name__}: {error}"
                _say(f"the manifest cannot be played in virtual time, so a simpler model predicts: {self.why_model}")
        return last_safe(count, model)

    def _virtual(self, manifests: Sequence[Manifest], plan: PropagationPlan, end: MeasuredEnd) -> bool:
        """Whether nothing is lost in virtual time, where Pods end as it was measured. Of a distribution of the searched
        hop it takes the longest."""
        from lastcall.cluster.virtual import Behaviour, VirtualRolloutCluster
        from lastcall.world.virtual import run_virtual

        source = "balancer" if self.hop == "balancer" else "node"
        late = with_lag(plan, self.hop, plan.of(self.hop).most + end.own_lag)
        options = replace(
            self.options, propagation=late, source=source, rates={"fresh": VIRTUAL_RATE}, control=0.5, settle=0.5
        )
        target = find_target(manifests, options)
        hook = max(0.0, end.to_term - end.to_hook)
        behaviour = Behaviour(end.accepts, end.drains, ignores=end.killed, hook=hook)

        async def main(world: World) -> bool:
            cluster = VirtualRolloutCluster(
                world,
                target.workload.obj["spec"]["template"],
                behaviour,
                late,
                self.key,
                kubernetes_version=options.kubernetes_version,
                nodes=2 if options.disrupt == "drain" else 1,
            )
            async with cluster:
                result = await RolloutSession(cluster, options, target, world).run(manifests)
                return not result.account.lost

        return run_virtual(main)

    def _confirm(
        self,
        search: EdgeSearch,
        value: Callable[[int], float],
        run: Callable[[int], Result],
        name: Callable[[float], str],
    ) -> Edge:
        runs: list[Result] = []
        useless = 0
        while (index := search.next()) is not None and useless <= search.runs:
            used = monotonic(self.clock) - self.began
            if used + self.longest > BUDGET_SECONDS:
                _say(f"{used:.0f} s are used up: no other run")
                break
            result = run(index)
            runs.append(result)
            account = result.account
            what = f"{len(account.lost)} of {account.total} requests lost"
            if result.judgement.verdict == "inconclusive":
                useless += 1
                what = f"of no use, {account.control_lost} were lost before anything was disrupted"
            else:
                search.trials.append(Trial(index, len(account.lost), account.total))
            _say(f"run {len(runs)} on the kernel (of {search.runs} or more), {name(value(index))}: {what}")
        return Edge(search, value, runs)

    @property
    def how(self) -> str:
        return "by a model" if self.why_model else "in virtual time"

    def _experiment(self, manifests: Sequence[Manifest], options: "RolloutOptions") -> Result:
        began = monotonic(self.clock)
        result = self.experiment(manifests, options)
        self.longest = max(self.longest, monotonic(self.clock) - began)
        return result

    def _old_version(self) -> bool:
        """Before 1.30 there are no sleeping hooks."""
        old = int(self.options.kubernetes_version.partition(".")[2]) < 30
        if old:
            _say(f"Kubernetes {self.options.kubernetes_version} has no preStop sleep: no smallest one is looked for")
        return old


def with_lag(plan: PropagationPlan, hop: str, seconds: float) -> PropagationPlan:
    """The plan with this delay of a hop, on all nodes; without those on the way of other requests."""
    text = f"{seconds:g}s"
    nodes = {node: {name: each for name, each in delays.items() if name != hop} for node, delays in plan.nodes.items()}
    others = ("watch", "kernel") if hop == "balancer" else ("balancer",)
    kept = {name: each for name, each in plan.delays.items() if name not in others}
    delays = {**kept, hop: parse_delay(text)}
    told = ",".join(f"{name}={delay.text}" for name, delay in delays.items())
    return PropagationPlan(text if told == f"watch={text}" else told, delays, nodes)


def _say(text: str) -> None:
    click.echo(f"lastcall: {text}", err=True)


# -- how it is told ----------------------------------------------------------------------------------------------------


def _prediction(seconds: float | None, end: MeasuredEnd) -> str:
    edge = "no endpoint lag is safe" if seconds is None else f"safe up to {seconds:g} s"
    killed = ", by SIGKILL" if end.killed else ""
    return (
        f"{edge} (the stop signal came {end.to_term:.2f} s after the DELETE, the listener was surely there for "
        f"{end.accepts:.2f} s more, the exit {end.drains:.2f} s after the signal{killed}; "
        f"a change of endpoints took {end.own_lag:.2f} s by itself)"
    )


def sentence(found: Found) -> str:
    """The largest endpoint lag, as found on the kernel."""
    if found.lag is None:
        if found.measured.judgement.verdict == "inconclusive":
            return found.measured.judgement.sentence
        return "no Pod was seen to end: there is nothing to find out"
    lag = found.lag
    if lag.safe is None:
        without = [run.account for run in (found.measured, *lag.runs) if run.propagation == found.measured.propagation]
        total, lost = sum(each.total for each in without), sum(len(each.lost) for each in without)
        causes = Counter(request.cause for each in without for request in each.lost)
        why = "; ".join(f"{count} {WHY[cause]}" for cause, count in causes.most_common())
        return f"not safe at any endpoint lag: without any, {lost} of {total} requests were lost ({why})"
    if lag.safe == 0:
        return f"safe only without any endpoint lag: {lag.unsafe:g} s are too many"
    if lag.unsafe is None:
        return f"safe up to {lag.safe:g} s of endpoint lag, and no larger one was found that loses requests"
    return f"safe up to {lag.safe:g} s of endpoint lag"


def sleep_sentence(found: Found) -> str:
    """The smallest sleep for the lag given; "" when it was not looked for."""
    edge = found.sleep
    if edge is None:
        return ""
    if edge.safe is None:
        return f"at {found.given:g} s of endpoint lag no preStop sleep was found that loses nothing"
    grace = found.grace(edge.safe)
    hook = f"preStop `sleep: {{seconds: {edge.safe:g}}}`" if edge.safe else "no preStop hook"
    return (
        f"at {found.given:g} s of endpoint lag the smallest change that loses nothing: {hook} with "
        f"terminationGracePeriodSeconds: {grace}"
    )


def _confirmation(edge: Edge) -> list[str]:
    lines = []
    for seconds, index in ((edge.safe, edge.search.safe), (edge.unsafe, edge.search.unsafe)):
        trials = edge.search.at(index)
        if seconds is None or not trials:
            continue
        total, lost = sum(each.total for each in trials), sum(each.lost for each in trials)
        lossy = sum(1 for each in trials if each.lost)
        if lost:
            lines.append(f"at {seconds:g} s {lossy} of {len(trials)} runs lost requests ({lost} of {total})")
        else:
            bound = upper_bound(0, total) * 100
            lines.append(
                f"at {seconds:g} s {len(trials)} of {len(trials)} runs lost nothing (of {total} requests; "
                f"at most {bound:.2g} % with 95 % confidence)"
            )
    if not edge.search.settled:
        lines.append("not confirmed: the runs do not agree, or there were too few")
    return lines


def tell_text(console: "Console", found: Found) -> None:
    """For people."""
    from rich.text import Text

    first = found.measured
    head = f"{first.what} · {first.disrupt} under load · {FROM[first.source]} · the largest endpoint lag ({found.hop})"
    console.print()
    console.print(Text(head, style="bold"))
    if found.lag is not None and found.end is not None:
        console.print(f"  predicted {found.how}: {_prediction(found.lag.predicted, found.end)}")
        for line in _confirmation(found.lag):
            console.print(f"  on the kernel: {line}")
    if found.sleep is not None and found.end is not None:
        console.print(Text(f"the smallest preStop sleep at {found.given:g} s", style="bold"))
        if found.sleep.predicted is not None:
            console.print(f"  predicted {found.how}: {found.sleep.predicted:g} s")
        for line in _confirmation(found.sleep):
            console.print(f"  on the kernel: {line}")
        drained = "no longer than it drained before it was killed" if found.end.killed else "as long as it was seen to"
        console.print(f"  the grace period is predicted: the sleep, and a drain {drained}")
    console.print()
    good = exit_is_good(found)
    console.print(Text(sentence(found), style="bold green" if good else "bold red"))
    if more := sleep_sentence(found):
        console.print(Text(more))


def exit_is_good(found: Found) -> bool:
    """Whether a safe lag was found, and a lag that was given for the hop is not beyond it."""
    if found.lag is None or found.lag.safe is None:
        return False
    return found.given <= found.lag.safe + found.others


def as_json(found: Found) -> Object:
    """`findSafe` in `lastcall/rollout/v1`; the runs themselves are its `experiments`."""
    end = found.end
    return {
        "sentence": sentence(found),
        "hop": found.hop,
        "predictedHow": found.how,
        "measuredEnd": None
        if end is None
        else {
            "toHook": round(end.to_hook, 6),
            "toTerm": round(end.to_term, 6),
            "accepts": round(end.accepts, 6),
            "drains": round(end.drains, 6),
            "ownLag": round(end.own_lag, 6),
            "killed": end.killed,
            "evidence": "observed",
        },
        "lag": _edge_json(found.lag),
        "preStopSleep": None
        if found.sleep is None
        else {
            "sentence": sleep_sentence(found),
            "propagation": found.propagation,
            "lag": found.given,
            **(_edge_json(found.sleep) or {}),
            "grace": None
            if found.sleep.safe is None
            else {"seconds": found.grace(found.sleep.safe), "evidence": "predicted"},
        },
    }


def _edge_json(edge: Edge | None) -> Any:
    if edge is None:
        return None
    return {
        "predicted": {"seconds": edge.predicted, "evidence": "predicted"},
        "safe": edge.safe,
        "unsafe": edge.unsafe,
        "confirmed": edge.search.settled,
        "trials": [
            {"seconds": edge.value(each.index), "lost": each.lost, "total": each.total, "evidence": "observed"}
            for each in (*edge.search.known, *edge.search.trials)
        ],
    }
