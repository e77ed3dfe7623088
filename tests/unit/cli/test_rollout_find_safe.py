"""`--find-safe`: the whole search, with experiments that are made up in place of the kernel's."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.cli import rollout_find_safe
from lastcall.cli.manifests import load_manifests
from lastcall.cli.rollout import RolloutOptions
from lastcall.cli.rollout_find_safe import Found, exit_is_good, find_safe, sentence, sleep_sentence
from lastcall.cluster.propagation import parse_propagation
from lastcall.traffic.lives import PodLife

POLITE = Path(__file__).resolve().parents[3] / "examples" / "rollout" / "polite.yaml"


def search(edge: float, monkeypatch: pytest.MonkeyPatch, *propagation: str, broken: bool = False) -> Found:
    """Runs on a kernel where a lag beyond `edge` seconds loses requests, however long the Pods sleep beyond the 5 s."""
    manifests = load_manifests((str(POLITE),))
    options = RolloutOptions(rates={"fresh": 200.0}, propagation=parse_propagation(propagation))

    def experiment(manifests: Any, options: RolloutOptions) -> Any:
        workload = next(each.obj for each in manifests if each.obj["kind"] == "Deployment")
        hook = (workload["spec"]["template"]["spec"]["containers"][0].get("lifecycle") or {}).get("preStop") or {}
        sleep = (hook.get("sleep") or {}).get("seconds", 0)
        lost = options.propagation.of("watch").most > edge - 5 + sleep
        request = SimpleNamespace(cause="late endpoint")
        found = SimpleNamespace(
            lost=(request,) * 3 if lost else (),
            total=100,
            causes=[("late endpoint", 3)] if lost else [],
            control_lost=0,
        )
        life = PodLife("u", deleted=10.0, hook=10.0, term=10.0 + sleep, exited=10.1 + sleep, unrouted=10.0)
        judgement = SimpleNamespace(verdict="requests lost" if lost else "nothing lost")
        told = options.propagation.text
        return SimpleNamespace(account=found, lives=[life], judgement=judgement, owner=workload, propagation=told)

    if broken:
        monkeypatch.setattr("lastcall.world.virtual.run_virtual", lambda main: 1 / 0)
    return find_safe(manifests, replace(options, confirm=5), experiment)


def test_the_safe_lag_is_predicted_in_virtual_time_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(5.0, monkeypatch)
    assert (
        found.how == "in virtual time" and found.lag is not None and found.lag.predicted == pytest.approx(4.9, abs=0.11)
    )
    assert found.lag.safe is not None and found.lag.unsafe is not None and 4.5 <= found.lag.safe <= 5 < found.lag.unsafe
    assert sentence(found) == f"safe up to {found.lag.safe:g} s of endpoint lag" and exit_is_good(found)
    assert len(found.lag.runs) == 5 and found.sleep is None


def test_what_virtual_time_cannot_play_a_model_predicts_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = search(5.0, monkeypatch, broken=True)
    assert found.how == "by a model" and found.lag is not None and found.lag.predicted == 5.0
    assert "a simpler model predicts: ZeroDivisionError" in capsys.readouterr().err
    assert rollout_find_safe.as_json(found)["predictedHow"] == "by a model"


def test_for_a_lag_given_the_smallest_sleep_is_found_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(5.0, monkeypatch, "2.5s", broken=True)
    assert found.sleep is not None and (found.sleep.safe, found.sleep.unsafe) == (3.0, 2.0)
    assert "`sleep: {seconds: 3}` with terminationGracePeriodSeconds: 4" in sleep_sentence(found)
    assert exit_is_good(found) and not exit_is_good(search(5.0, monkeypatch, "8s", broken=True))


def test_what_is_lost_without_any_lag_is_safe_at_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = search(-1.0, monkeypatch, broken=True)
    assert "not safe at any endpoint lag: without any, 3 of 100 requests were lost (3 " in sentence(found)
    assert not exit_is_good(found)
