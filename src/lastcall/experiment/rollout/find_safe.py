"""Run `lastcall rollout --find-safe`: find the largest endpoint lag without a loss, the smallest sleep for a given one.

One run on the kernel measures how the Pods end, and what becomes of each kind of load meanwhile; a second one where no
request was under way when a Pod stopped. From that the edge is predicted for each kind (`predict.py`), evidence
`predicted`. Last, runs on the kernel with all kinds, below and above the edge, confirm or move it.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from lastcall.errors import UserError
from lastcall.experiment.rollout.predict import Prediction, Predictor, with_lag
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.target import find_target, with_advice
from lastcall.kube.api import Object
from lastcall.kube.cluster import PropagationPlan
from lastcall.manifests import Manifest
from lastcall.traffic import (
    REUSED,
    Account,
    EdgeSearch,
    Kind,
    KindEnd,
    MeasuredEnd,
    Trial,
    combine,
    drains,
    grace_of,
    measure_end,
    measure_kinds,
    only_sleeps,
    probe_lag,
    sleep_patch,
    smallest_grace,
)
from lastcall.world.clock import RealClock, monotonic
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions

STEP_SECONDS = 0.1
"""Between two lags that can be tried."""
MOST_SECONDS = 60.0
"""No longer lag is looked for."""
MOST_SLEEP = 120
"""Nor a longer sleep, in seconds."""
ASIDE_REQUESTS = 20.0
"""How many requests come in the time by which runs stay away from the edge: enough to lose one for certain."""
MOST_ASIDE_SECONDS = 1.0
BUDGET_SECONDS = 1800.0
"""When so much time is used up, no other run begins."""

Experiment = Callable[[Sequence[Manifest], "RolloutOptions"], Result]


@dataclass(frozen=True, slots=True)
class Edge:
    """What one search found. `value(index)` is seconds; `runs` are those on the kernel that were of use, in order of
    `search.trials`, and `useless` the others."""

    search: EdgeSearch
    value: Callable[[int], float]
    prediction: Prediction
    runs: Sequence[Result]
    useless: Sequence[Result] = ()
    known: Sequence[Result] = ()
    """Of `search.known`: runs that came before."""

    @property
    def safe(self) -> float | None:
        return None if self.search.safe is None else self.value(self.search.safe)

    @property
    def unsafe(self) -> float | None:
        return None if self.search.unsafe is None else self.value(self.search.unsafe)

    @property
    def predicted(self) -> float | None:
        return self.predicted_of(self.search.predicted)

    def predicted_of(self, index: int) -> float | None:
        """Return the value of an index, None for none that is safe."""
        return self.value(index) if index >= 0 else None

    def at(self, index: int) -> list[tuple[Trial, Result]]:
        """Return the runs at one value."""
        search = self.search
        pairs = [*zip(search.known, self.known, strict=True), *zip(search.trials, self.runs, strict=True)]
        return [(trial, run) for trial, run in pairs if trial.index == index]

    def losses_at(self, index: int) -> list[tuple[str, int]]:
        """Return what the kernel's runs at one value lost, by kind and cause, the most frequent first."""
        return Counter(
            f"{each.outcome.kind}, {each.cause}" for _, run in self.at(index) for each in run.account.lost
        ).most_common()

    @property
    def surprises(self) -> list[int]:
        """Return the values at which the kernel found otherwise than was predicted."""
        tried = dict.fromkeys(each.index for each in (*self.search.known, *self.search.trials))
        lossy = {index: any(each.lost for each in self.search.at(index)) for index in tried}
        return [index for index in sorted(tried) if lossy[index] == (index <= self.search.predicted)]


@dataclass(frozen=True, slots=True)
class Found:
    """`lag` is the searched one of the hop, None when the run without any was of no use. `sleep` is the one for a lag
    that was given, `given` seconds of all hops together; `others` are those of the hops that are not searched.
    `measured` and `probe` (at `probe_lag` seconds; None: it was not needed) report `end` and `kinds`."""

    measured: Result
    end: MeasuredEnd | None
    hop: str
    kinds: Sequence[KindEnd] = ()
    probe: Result | None = None
    probe_lag: float = 0.0
    lag: Edge | None = None
    sleep: Edge | None = None
    given: float = 0.0
    others: float = 0.0
    propagation: str = ""

    @property
    def runs(self) -> list[Result]:
        """Return all of them."""
        searched = [run for edge in (self.lag, self.sleep) if edge is not None for run in (*edge.runs, *edge.useless)]
        return [self.measured, *([self.probe] if self.probe is not None else []), *searched]

    def grace(self, sleep: float) -> int:
        """Return what a hook that sleeps so long needs, in seconds: predicted."""
        return smallest_grace(drains(self.end, self.kinds), sleep) if self.end is not None else 0

    @property
    def own_grace(self) -> int:
        """Return the manifest's grace period, in seconds."""
        return grace_of(self.measured.owner)


def find_safe(
    manifests: Sequence[Manifest],
    options: "RolloutOptions",
    experiment: Experiment,
    say: Callable[[str], None],
    tell: Callable[[Found], None] | None = None,
) -> Found:
    """Return the whole search; `say` gets how far it is, `tell` hears of what is found so far.

    Raises what an experiment raises, and UserError.
    """
    if options.apply_advice:
        raise UserError("--find-safe and --apply-advice do not work together: the search tries changes of its own")
    return _Search(manifests, options, experiment, say, tell or (lambda found: None)).run()


def _lag_at(index: int) -> float:
    return round(index * STEP_SECONDS, 3)


def _index_of(lag: float) -> int:
    return round(lag / STEP_SECONDS)


def _sleep_at(index: int) -> float:
    return float(MOST_SLEEP - index)


@dataclass(slots=True)
class _Search:
    manifests: Sequence[Manifest]
    options: "RolloutOptions"
    experiment: Experiment
    say: Callable[[str], None]
    tell: Callable[[Found], None]
    clock: RealClock = field(default_factory=RealClock)
    began: float = 0.0
    longest: float = 0.0

    def run(self) -> Found:
        self.began = monotonic(self.clock)
        find_target(self.manifests, self.options)  # bad input before anything is started
        plan, hop = self.options.propagation, self._hop
        others = with_lag(plan, hop, 0.0).most_to(hop)
        self.say("how do the Pods end, and what becomes of each kind of load? a run on the kernel without endpoint lag")
        measured = self._experiment(self.manifests, self.options.with_cluster(propagation=self._plan(0)))
        end = measure_end(measured.lives, others)
        found = Found(measured, end, hop, others=others, propagation=plan.text)
        if end is None or measured.judgement.verdict == "inconclusive":
            return found
        found = self._under_way(replace(found, kinds=self._kinds(measured)), end)
        predictor = Predictor(self.options, hop, end, found.kinds, self.say)
        found = replace(found, lag=self._lag(found, end, predictor))
        if plan.most > 0 and self._can_sleep(measured.owner):
            found = replace(found, given=plan.most_to(hop))
            found = replace(found, sleep=self._sleep(found, predictor))
        return found

    @property
    def _hop(self) -> str:
        return "balancer" if self.options.source == "balancer" else "watch"

    def _plan(self, index: int) -> PropagationPlan:
        return with_lag(self.options.propagation, self._hop, _lag_at(index))

    def _under_way(self, found: Found, end: MeasuredEnd) -> Found:
        """With what becomes of requests that are under way at the stop signal, where the first run had none."""
        lag = probe_lag(end, found.kinds, found.others)
        if lag is None or found.measured.account.lost:
            return found
        lag = _lag_at(int(lag / STEP_SECONDS))
        unknown = ", ".join(each.kind for each in found.kinds if each.at_stop == "unknown" and not each.quick)
        self.say(f"does the application finish what it has begun ({unknown})? a run with {lag:g} s of lag")
        probe = self._experiment(self.manifests, self.options.with_cluster(propagation=self._plan(_index_of(lag))))
        if probe.judgement.verdict == "inconclusive":
            return found
        return replace(found, probe=probe, probe_lag=lag, kinds=combine(found.kinds, self._kinds(probe)))

    def _lag(self, found: Found, end: MeasuredEnd, predictor: Predictor) -> Edge:
        count = round(MOST_SECONDS / STEP_SECONDS) + 1
        prediction = predictor.predict(
            count,
            lambda index: (self.manifests, self._plan(index)),
            lambda index: (_lag_at(index) + found.others, None),
        )
        last = _lag_at(prediction.last) if prediction.last >= 0 else None
        self.say(f"predicted {prediction.how}: {tell_prediction(last, end)}")
        known = {0: found.measured}
        if found.probe is not None:
            known[_index_of(found.probe_lag)] = found.probe
        trials = tuple(Trial(index, len(run.account.lost), run.account.total) for index, run in known.items())
        margin = max(1, math.ceil(self._aside(prediction.first_to_lose) / STEP_SECONDS))
        search = EdgeSearch(count, prediction.last, margin, self.options.confirm, trials)

        def run(index: int) -> Result:
            return self._experiment(self.manifests, self.options.with_cluster(propagation=self._plan(index)))

        edge = Edge(search, _lag_at, prediction, (), known=tuple(known.values()))
        return self._confirm(
            edge,
            run,
            lambda seconds: f"{seconds:g} s of endpoint lag",
            lambda edge: self.tell(replace(found, lag=edge)),
        )

    def _aside(self, kinds: Sequence[Kind]) -> float:
        """How far away from the edge runs stay: as long as it takes to send enough of what is lost there first. Kinds
        that keep their connections lose one only when they have to open another."""
        rate = sum(rate for kind, rate in self.options.load.rates.items() if kind in kinds and kind not in REUSED)
        return min(MOST_ASIDE_SECONDS, ASIDE_REQUESTS / rate if rate else MOST_ASIDE_SECONDS)

    def _sleep(self, found: Found, predictor: Predictor) -> Edge:
        count, owner = MOST_SLEEP + 1, found.measured.owner

        def changed(index: int) -> list[Manifest]:
            sleep = _sleep_at(index)
            return with_advice(self.manifests, owner, sleep_patch(owner, int(sleep), found.grace(sleep)))

        prediction = predictor.predict(
            count,
            lambda index: (changed(index), self.options.propagation),
            lambda index: (found.given, _sleep_at(index)),
        )
        edge = Edge(EdgeSearch(count, prediction.last, 0, self.options.confirm), _sleep_at, prediction, ())
        if edge.predicted is None:
            return edge
        self.say(f"predicted {prediction.how} for {found.given:g} s: a preStop sleep of {edge.predicted:g} s")

        def run(index: int) -> Result:
            return self._experiment(changed(index), self.options)

        return self._confirm(
            edge,
            run,
            lambda seconds: f"a preStop sleep of {seconds:g} s",
            lambda edge: self.tell(replace(found, sleep=edge)),
        )

    def _confirm(
        self, edge: Edge, run: Callable[[int], Result], name: Callable[[float], str], tell: Callable[[Edge], None]
    ) -> Edge:
        search = edge.search
        runs: list[Result] = []
        useless: list[Result] = []
        tell(edge)
        while (index := search.next()) is not None and len(useless) <= search.runs:
            used = monotonic(self.clock) - self.began
            if used + self.longest > BUDGET_SECONDS:
                self.say(f"{used:.0f} s are used up: no other run")
                break
            result = run(index)
            account = result.account
            what = f"{len(account.lost)} of {account.total} requests lost{_lost_by_kind(account)}"
            if result.judgement.verdict == "inconclusive":
                useless.append(result)
                what = f"of no use: {result.judgement.sentence}"
            else:
                runs.append(result)
                search.trials.append(Trial(index, len(account.lost), account.total))
            number = len(runs) + len(useless)
            self.say(f"run {number} on the kernel (of {search.runs} or more), {name(edge.value(index))}: {what}")
            tell(replace(edge, runs=tuple(runs), useless=tuple(useless)))
        return replace(edge, runs=tuple(runs), useless=tuple(useless))

    def _kinds(self, result: Result) -> tuple[KindEnd, ...]:
        causes = {each.outcome.id: each.cause for each in result.account.lost}
        return measure_kinds(self.options.load.rates, result.outcomes, causes, result.lives)

    def _experiment(self, manifests: Sequence[Manifest], options: "RolloutOptions") -> Result:
        began = monotonic(self.clock)
        result = self.experiment(manifests, options)
        self.longest = max(self.longest, monotonic(self.clock) - began)
        return result

    def _can_sleep(self, owner: Object) -> bool:
        """Before 1.30 there are no sleeping hooks, and a hook that does something else is not to be replaced."""
        why = ""
        if not self.options.sleep_hooks:
            why = f"Kubernetes {self.options.kubernetes_version} has no preStop sleep"
        elif not only_sleeps(owner):
            why = "the container's preStop hook does something else than wait"
        if why:
            self.say(f"{why}: no smallest sleep is looked for")
        return not why


def _lost_by_kind(account: Account) -> str:
    """Which kinds were lost, where several were sent; "" else."""
    lost = ", ".join(f"{count} {kind}" for kind, count in account.losses.items() if count)
    return f" ({lost})" if lost and len(account.totals) > 1 else ""


def tell_prediction(seconds: float | None, end: MeasuredEnd) -> str:
    """Return the edge, and what was measured of the Pods' ends."""
    edge = "no endpoint lag is safe" if seconds is None else f"safe up to {seconds:g} s"
    killed = ", by SIGKILL" if end.killed else ""
    return (
        f"{edge} (the stop signal came {end.to_term:.2f} s after the DELETE, it kept listening for at least "
        f"{end.accepts:.2f} s more, the exit {end.drains:.2f} s after the signal{killed}; "
        f"a change of endpoints took {end.own_lag:.2f} s by itself)"
    )


def exit_is_good(found: Found) -> bool:
    """Return whether a safe lag was found, and a lag that was given for the hop is not beyond it."""
    if found.lag is None or found.lag.safe is None:
        return False
    return found.given <= found.lag.safe + found.others
