"""`--find-safe`: the whole search, with experiments that are made up in place of the kernel's."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rollout_lives import pod_life

from lastcall.experiment.rollout.find_safe import Found, exit_is_good, find_safe
from lastcall.experiment.rollout.find_safe_report import as_json, sentence, sleep_sentence, tell_surprises, tell_text
from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.kube.cluster.propagation import parse_propagation
from lastcall.manifests.read import load_manifests
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Outcome

POLITE = Path(__file__).resolve().parents[4] / "examples" / "rollout" / "polite.yaml"
DELETED = 100.0
TOOK = {"fresh": 0.001, "slow": 1.0, "stream": 1.5, "websocket": 1.5, "http2": 0.3, "keep-alive": 0.001, "tcp": 0.001}


@dataclass
class Kernel:
    """One Pod ends at 100 s; each kind is sent ten times a second to it, until its lag is over. What is new is refused
    after the stop signal. Of what is under way then it finishes the kinds in `finishes` (all others were lost)."""

    rates: Mapping[Any, float] = field(default_factory=lambda: {"fresh": 200.0})
    finishes: tuple[str, ...] = tuple(TOOK)
    shift: float = 0.0
    """So much earlier than was measured without lag do Pods stop to listen at a lag."""
    luck: Callable[[str], bool] = lambda kind: False
    """A kind that loses nothing whatever happens."""
    runs: list[float] = field(default_factory=list)

    def __call__(self, manifests: Any, options: RolloutOptions) -> Any:
        workload = next(each.obj for each in manifests if each.obj["kind"] == "Deployment")
        spec = workload["spec"]["template"]["spec"]
        hook = (spec["containers"][0].get("lifecycle") or {}).get("preStop") or {}
        sleep = float((hook.get("sleep") or {}).get("seconds", 0))
        lag = options.propagation.of("watch").most
        self.runs.append(lag)
        stop = DELETED + sleep
        kill = DELETED + spec.get("terminationGracePeriodSeconds", 30)
        outcomes: list[Outcome] = []
        lost = []
        for number, (kind, sent) in enumerate(self._sent(DELETED + lag)):
            until = sent + TOOK[kind]
            cause = self._cause(kind, sent, until, stop - (self.shift if lag else 0.0), kill)
            outcome = Outcome.from_wire(
                [number, kind, sent, sent, until, number, 0.0, 0 if cause else 200, "10.1", "refused" if cause else ""]
            )
            outcomes.append(outcome)
            if cause:
                lost.append(SimpleNamespace(cause=cause, outcome=outcome))
        found = SimpleNamespace(
            lost=tuple(lost),
            total=len(outcomes),
            totals=Counter(each.kind for each in outcomes),
            losses={kind: Counter(each.outcome.kind for each in lost)[kind] for kind in self.rates},
            control_lost=0,
        )
        life = pod_life(
            "u", ip="10.1", deleted=DELETED, hook=DELETED, term=stop, exited=stop + 0.1, unrouted=DELETED + lag
        )
        judgement = SimpleNamespace(verdict="requests lost" if lost else "nothing lost", sentence="")
        return SimpleNamespace(
            account=found,
            lives=[life],
            outcomes=outcomes,
            judgement=judgement,
            owner=workload,
            propagation=options.propagation.text,
            what="Deployment polite",
            disrupt=options.disrupt,
            source=options.source,
        )

    def _sent(self, unrouted: float) -> Iterator[tuple[Any, float]]:
        for kind in self.rates:
            at = DELETED - 1
            while at < unrouted:
                yield kind, at
                at += 0.1

    def _cause(self, kind: str, sent: float, until: float, stop: float, kill: float) -> str:
        if self.luck(kind):
            return ""
        if sent > stop:
            return "late endpoint"
        if until > stop and TOOK[kind] > 0.1 and kind not in self.finishes:
            return "cut off"
        return "killed" if until > kill else ""


def search(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, *propagation: str, broken: bool = False, manifest: Path = POLITE
) -> Found:
    manifests = load_manifests((str(manifest),))
    options = RolloutOptions(load=Load(rates=dict(kernel.rates))).with_cluster(
        propagation=parse_propagation(propagation)
    )
    if broken:
        monkeypatch.setattr("lastcall.world.virtual.run_virtual", lambda main: 1 / 0)
    return find_safe(manifests, replace(options, confirm=5), kernel, lambda line: print(line, file=sys.stderr))


def text_of(found: Found) -> str:
    console = Console(file=StringIO(), width=400, highlight=False)
    tell_text(console, found)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_safe_lag_is_predicted_in_virtual_time_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(Kernel(), monkeypatch)
    assert found.lag is not None and found.lag.predicted == pytest.approx(4.9, abs=0.11)
    assert found.lag.prediction.how == "in virtual time"
    assert found.lag.safe is not None and found.lag.unsafe is not None and 4.5 <= found.lag.safe <= 5 < found.lag.unsafe
    assert sentence(found).startswith(f"safe up to {found.lag.safe:g} s of endpoint lag; at {found.lag.unsafe:g} s ")
    assert exit_is_good(found)
    assert len(found.lag.runs) == 5 and found.sleep is None and tell_surprises(found.lag) == []


@pytest.mark.parametrize("broken", [False, True], ids=["in virtual time", "by the rule"])
def test_each_kind_of_load_has_an_edge_of_its_own(monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    """The application finishes streams and leaves slow requests: those have to be over when the hook ends."""
    rates = {"fresh": 100.0, "slow": 20.0, "stream": 10.0, "keep-alive": 50.0}
    kernel = Kernel(rates, finishes=("fresh", "stream", "keep-alive"))
    found = search(kernel, monkeypatch, broken=broken)
    assert found.lag is not None and found.lag.prediction.how == ("by a rule" if broken else "in virtual time")
    edges = {kind: found.lag.predicted_of(index) for kind, index in found.lag.prediction.kinds.items()}
    assert edges == pytest.approx({"fresh": 4.9, "stream": 4.9, "keep-alive": 4.9, "slow": 3.9}, abs=0.21)
    # The second run had requests under way at the stop signal, which the one without lag had not.
    assert found.probe is not None and 4.3 <= kernel.runs[1] < 5
    assert {each.kind: each.at_stop for each in found.kinds} == {
        "fresh": "unknown",
        "slow": "lost",
        "stream": "answered",
        "keep-alive": "answered",
    }
    assert found.lag.safe is not None and 3 <= found.lag.safe <= 4 < (found.lag.unsafe or 0)
    told = text_of(found)
    slow = f"slow: safe up to {edges['slow']:g} s: an answer takes 1.0 s, and the application left without ending well"
    assert slow in told
    assert (
        "keep-alive: no lag loses a request on a connection that is open; one that has to be opened anew is safe up to"
        in told
    )
    assert json.dumps(as_json(found))


def test_answers_that_outlast_the_grace_period_are_the_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOK, "slow", 26.0)
    found = search(Kernel({"slow": 20.0}), monkeypatch)
    assert found.lag is not None and found.lag.predicted == pytest.approx(3.9, abs=0.21)
    assert found.lag.safe is not None and found.lag.safe <= 4.1


def test_what_virtual_time_cannot_play_a_rule_predicts_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = search(Kernel(), monkeypatch, broken=True)
    assert found.lag is not None and found.lag.predicted == 5.0
    assert "so a rule predicts: ZeroDivisionError" in capsys.readouterr().err
    assert as_json(found)["predictedHow"] == "by a rule"


def test_for_a_lag_given_the_smallest_sleep_is_found_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(Kernel(), monkeypatch, "2.5s", broken=True)
    assert found.sleep is not None and (found.sleep.safe, found.sleep.unsafe) == (3.0, 2.0)
    told = sleep_sentence(found)
    assert "`sleep: {seconds: 3}`; the manifest's terminationGracePeriodSeconds: 30 is enough" in told
    assert "(predicted use: 4 s)" in told
    grace = as_json(found)["preStopSleep"]["grace"]
    assert (grace["seconds"], grace["manifest"], grace["advised"]) == (4, 30, 30)
    spec = {"containers": [{"name": "app"}], "terminationGracePeriodSeconds": 2}
    short = SimpleNamespace(owner={"spec": {"template": {"spec": spec}}})
    told = sleep_sentence(replace(found, measured=short))  # type: ignore[arg-type]
    assert told.endswith("; raise terminationGracePeriodSeconds from 2 to 4")
    assert exit_is_good(found) and not exit_is_good(search(Kernel(), monkeypatch, "8s", broken=True))


def test_the_smallest_sleep_holds_what_is_under_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = search(Kernel({"slow": 20.0}, finishes=()), monkeypatch, "2.5s", broken=True)
    assert leaves.sleep is not None and (leaves.sleep.safe, leaves.sleep.unsafe) == (4.0, 3.0)
    finishes = search(Kernel({"slow": 20.0}), monkeypatch, "2.5s", broken=True)
    assert finishes.sleep is not None and (finishes.sleep.safe, finishes.sleep.unsafe) == (3.0, 2.0)
    assert "(predicted use: 5 s)" in sleep_sentence(finishes)  # the sleep, and the last answer


def test_a_hook_that_does_more_than_wait_is_not_replaced_to_find_a_sleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drains = POLITE.read_text().replace("sleep:\n                seconds: 5", "exec: {command: [drain, now]}")
    assert drains != POLITE.read_text()
    (tmp_path / "drains.yaml").write_text(drains)
    found = search(Kernel(), monkeypatch, "2.5s", broken=True, manifest=tmp_path / "drains.yaml")
    assert found.sleep is None and found.lag is not None
    assert "preStop hook does something else than wait: no smallest sleep" in capsys.readouterr().err


def test_a_kernel_that_finds_otherwise_is_told_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(Kernel(shift=1.0), monkeypatch)
    assert found.lag is not None and found.lag.safe is not None and found.lag.safe <= 4.1
    (told, *_) = tell_surprises(found.lag)
    assert told.startswith("prediction and kernel disagree: ") and "was predicted to be safe" in told
    assert "fresh, late endpoint" in told and told in text_of(found)


def test_kept_connections_that_are_lucky_are_told_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(Kernel({"keep-alive": 50.0}, luck=lambda kind: True), monkeypatch)
    assert found.lag is not None and found.lag.unsafe is None
    assert "predicted to lose requests" in tell_surprises(found.lag)[0]
    assert "only a connection that keep-alive had to open anew" in tell_surprises(found.lag)[0]
    assert sentence(found) == "safe up to 60 s of endpoint lag, the largest that is tried"


def test_what_is_lost_without_any_lag_is_safe_at_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(Kernel({"slow": 10.0, "fresh": 10.0}, shift=0.0, finishes=()), monkeypatch, broken=True)
    assert found.lag is not None and found.lag.safe is not None
    monkeypatch.setitem(TOOK, "slow", 7.0)
    found = search(Kernel({"slow": 10.0, "fresh": 10.0}, finishes=()), monkeypatch, broken=True)
    assert "not safe at any endpoint lag: without any, " in sentence(found) and not exit_is_good(found)


def test_what_no_sleep_can_save_is_played_with_long_ones_too_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel({"fresh": 20.0, "keep-alive": 20.0})
    monkeypatch.setattr(
        Kernel, "_cause", lambda self, kind, sent, until, stop, kill: "stale connection" if kind == "keep-alive" else ""
    )
    found = search(kernel, monkeypatch, "500ms")
    assert found.sleep is not None and found.sleep.prediction.how == "in virtual time" and found.sleep.predicted is None
    told = text_of(found)
    assert "keep-alive: lost whatever the lag, on connections that the ending Pod closes without a goodbye" in told
    assert "no preStop sleep was found that loses nothing" in told and "not confirmed" not in told
    assert len(found.runs) == 1
