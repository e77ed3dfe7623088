"""What the page knows of a rollout: fed by the command that makes it, drawn for all browsers together."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field
from typing import Any, Protocol

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.records.said import tell
from lastcall.traffic import (
    Account,
    Outcome,
    PodLife,
    account,
    measure_end,
    measure_kinds,
    only_ids,
    pod_lives,
    with_causes,
    with_lags,
)
from lastcall.ui.rollout.accounted import account_from_wire
from lastcall.ui.rollout.followed import lives_from_wire, traced_from_wire
from lastcall.ui.rollout.picture import picture
from lastcall.ui.rollout.values import Values, least_unavailable, patch_of, read_values, replicas_of, values_of
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

DRAW_SECONDS = 0.4
"""Between two drawings; more where one takes long."""
_SHARE = 5
"""Of its time this process draws at most one part in so many."""


class Forecaster(Protocol):
    """Plays a session in virtual time, elsewhere; what it answers comes by `RolloutRoom.forecast`."""

    def ask(self, number: int, values: Values, patch: dict[str, Any], measured: dict[str, Any]) -> None: ...


@dataclass(slots=True)
class Seen:
    """What one experiment has shown so far."""

    records: list[Record] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    """Of each line of the Pods, the ids of requests and messages."""
    whole_output: bool = True

    def take(self, record: Record) -> None:
        """Take a record; of what the Pods printed, only which requests they saw."""
        if record.kind != kinds.OUTPUT:
            self.records.append(record)
            return
        line = record.facts_as(kinds.OUTPUT)
        self.whole_output = self.whole_output and not line.get("dropped")
        if ids := only_ids(str(line.get("text"))):
            self.printed.append(ids)


class RolloutRoom:
    """`state` is what the command says (`lastcall.cli.rollout.page`); {} while there is no rollout."""

    def __init__(self, clock: Clock, again: Callable[[dict[str, Any], str], None]) -> None:
        """`again` asks the command for another experiment: with a patch of the workload, and delays of hops."""
        self.version = 0
        """Of `document`."""
        self.document: dict[str, Any] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.forecaster: Forecaster | None = None
        self._clock = clock
        self._again = again
        self._state: dict[str, Any] = {}
        self._seen = Seen()
        self._stale = False
        self._asked = 0
        self._forecast: dict[str, Any] | None = None

    # -- fed by the command -------------------------------------------------------------------------------------------

    def update(self, state: Mapping[str, Any]) -> None:
        """Take how far it is. Another `number` is another experiment."""
        if state.get("number") != self._state.get("number"):
            self._seen = Seen()
            self._forecast = None
        self._state = dict(state)
        self._stale = True

    def records(self, records: Iterable[Record]) -> None:
        """Take records; of what the Pods printed, only which requests they saw."""
        if not self._state:
            return
        for each in records:
            self._seen.take(each)
        self._stale = True

    def outcomes(self, outcomes: Iterable[list[Any]]) -> None:
        self._seen.outcomes += [Outcome.from_wire(each) for each in outcomes]
        self._stale = True

    def forecast(self, answer: dict[str, Any]) -> None:
        """Take an answer of the forecaster; one that is not the latest asked for is dropped."""
        if answer.get("number") == self._asked:
            self._forecast = answer
            self._stale = True

    def bye(self) -> None:
        """Draw what is known once more: the command ends."""
        if self._state:
            self._state |= {"over": True, "idle": True}
            self.draw()

    # -- drawn for browsers -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Draw what has changed, until cancelled."""
        while True:
            took = 0.0
            if self._state and (self._stale or not self._state.get("over")):
                began = monotonic(self._clock)
                self.draw()
                took = monotonic(self._clock) - began
            await self._clock.sleep(max(DRAW_SECONDS, took * _SHARE))

    def draw(self) -> None:
        """Draw a new version of the document."""
        self._stale = False
        state, now = self._state, monotonic(self._clock)
        over = bool(state.get("over"))
        lives, found = self._account()
        began = state.get("began")
        zero = began if began is not None else min((each.sent for each in self._seen.outcomes), default=now)
        # Once it has ended, the picture ends with its last request, however long the page is open.
        until = max([each.finished for each in self._seen.outcomes] + [zero]) if over else now
        self.document = {
            "number": state["number"],
            "phase": state.get("phase", ""),
            "idle": bool(state.get("idle")),
            "of": state.get("of", 1),
            "why": state.get("why", ""),
            "search": state.get("search"),
            "theirs": state.get("theirs"),
            "began": began is not None,
            "what": state["what"],
            "service": state["service"],
            "disrupt": state["disrupt"],
            "source": state["source"],
            "now": round(until - zero, 3),
            "verdict": state.get("verdict", ""),
            "sentence": state.get("sentence", ""),
            "patch": state.get("patchText", ""),
            "command": state.get("command", ""),
            "error": state.get("error", ""),
            "runs": state.get("runs", []),
            "values": self._own().to_wire(),
            "replicas": replicas_of(state["workload"]),
            "leastUnavailable": least_unavailable(state["workload"]),
            "canForecast": self._measured(lives, found) is not None,
            "forecast": self._forecast,
            **picture(self._seen.outcomes, lives, found, zero, until),
        }
        self.version += 1
        self.on_change()

    def _account(self) -> tuple[list[PodLife], Account | None]:
        """Account for the requests so far; once the command has done so (`state["account"]`), that counts."""
        state = self._state
        if state.get("theirs"):
            return self._account_there()
        foreign = set(state.get("foreign") or ())
        lives = pod_lives(self._seen.records, state.get("port"), set(state.get("containers") or ()))
        lives = [each for each in lives if each.uid not in foreign]
        began, accounted = state.get("began"), state.get("account")
        if began is None:
            return lives, None
        if accounted is not None:
            return lives, account_from_wire(accounted)
        return lives, account(
            self._seen.outcomes, lives, self._seen.printed, began, whole_output=self._seen.whole_output
        )

    def _account_there(self) -> tuple[list[PodLife], Account | None]:
        """Account for an existing cluster, where moments are known within bounds only."""
        lives, began = lives_from_wire(self._state.get("lives") or ()), self._state.get("began")
        if began is None:
            return lives, None
        if accounted := self._state.get("account"):
            found = account_from_wire(accounted)
            return with_lags(found, lives), found
        found = account(self._seen.outcomes, [], (), began, whole_output=False)
        if traced := self._state.get("traced"):
            found = with_causes(found, traced_from_wire(traced, self._seen.outcomes))
            lives = with_lags(found, lives)
        return lives, found

    def _own(self) -> Values:
        state = self._state
        return values_of(state["workload"], state.get("hops") or {})

    def _measured(self, lives: list[PodLife], found: Account | None) -> dict[str, Any] | None:
        """How Pods ended so far, and what became of each kind of load; None before one has, and where that is known
        within bounds only."""
        if self._state.get("theirs"):
            return None
        end = measure_end(lives, float(self._state.get("delayed") or 0.0))
        if end is None or found is None:
            return None
        causes = {each.outcome.id: each.cause for each in found.lost}
        those = measure_kinds(self._state["rates"], self._seen.outcomes, causes, lives)
        return {"end": asdict(end), "kinds": [asdict(each) for each in those]}

    # -- asked by a browser -------------------------------------------------------------------------------------------

    def what_if(self, changes: Mapping[str, Any]) -> int:
        """Predict it with these values; the number that the answer has. Raises ValueError, LookupError when nothing can
        be predicted yet."""
        values, patch = self._changed(changes)
        measured = self._measured(*self._account())
        if theirs := self._state.get("theirs"):
            raise LookupError(tell("how Pods end there is not measured: $command predicts", command=theirs["here"]))
        if measured is None or self.forecaster is None:
            raise LookupError(tell("no Pod has ended yet: how Pods end is measured first"))
        self._asked += 1
        self.forecaster.ask(self._asked, values, patch, measured)
        return self._asked

    def run_again(self, changes: Mapping[str, Any]) -> None:
        """Start another experiment, with `values` or the advice. Raises ValueError, LookupError while one runs."""
        if not self._state or not self._state.get("idle"):
            raise LookupError(tell("an experiment is running: wait until it ends"))
        if self._state.get("theirs"):
            if changes:
                raise ValueError(
                    tell("on that cluster nothing is changed from here: change it with kubectl, and run again")
                )
            self._again({}, "")
            return
        if changes.get("advice"):
            patch = self._state.get("patch") or {}
            if not patch:
                raise ValueError(tell("there is no patch to apply"))
            self._again(patch, self._own().propagation)
            return
        values, patch = self._changed(changes)
        self._again(patch, values.propagation)

    def _changed(self, changes: Mapping[str, Any]) -> tuple[Values, dict[str, Any]]:
        if not self._state:
            raise LookupError(tell("there is no rollout"))
        own = self._own()
        values = read_values(changes, own)
        hooks = bool(self._state.get("sleepHooks"))
        return values, patch_of(self._state["workload"], values, own, sleep_hooks=hooks)
