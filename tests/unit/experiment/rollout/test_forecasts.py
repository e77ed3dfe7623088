"""What-if of a rollout's page: the process that plays sessions in virtual time answers the latest question."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastcall.experiment.rollout.forecast import main
from lastcall.manifests.read import load_manifests

NAIVE = Path(__file__).parents[4] / "examples/rollout/naive.yaml"
END = {"to_hook": 0.0, "to_term": 0.02, "accepts": 0.0, "drains": 0.1, "own_lag": 0.02, "killed": False}
FRESH = {"kind": "fresh", "took": 0.005, "at_stop": "answered", "seen": 3}


class Forecasts:
    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._lines = sock, sock.makefile("rb")

    def tell(self, *messages: dict[str, Any]) -> None:
        self._sock.sendall(b"".join(json.dumps(each).encode() + b"\n" for each in messages))

    def next(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer

    def last(self, number: int) -> dict[str, Any]:
        """The answer after which no other comes."""
        while (answer := self.next())["number"] != number or not answer["done"]:
            pass
        return answer


def question(number: int, watch: float, patch: dict[str, Any] | None = None, **values: Any) -> dict[str, Any]:
    told = {"sleep": 0, "grace": 30, "maxUnavailable": 0, "hops": {"watch": watch}, **values}
    return {"number": number, "values": told, "patch": patch or {}, "measured": {"end": END, "kinds": [FRESH]}}


def sleeping(seconds: int) -> dict[str, Any]:
    hook = {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", **hook}]}}}}


@pytest.fixture
def forecasts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forecasts]:
    monkeypatch.setattr("lastcall.experiment.rollout.forecast.signal.signal", lambda number, how: None)
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    thread = threading.Thread(target=main, args=(theirs.detach(),))
    thread.start()
    made = Forecasts(ours)
    manifests = [each.obj for each in load_manifests([str(NAIVE)])]
    made.tell(
        {
            "setup": {
                "manifests": manifests,
                "options": {"load": {"rates": {"fresh": 150.0}}, "kubernetes_version": "1.36"},
            }
        }
    )
    yield made
    ours.shutdown(socket.SHUT_RDWR)
    thread.join(30)
    assert not thread.is_alive()


def test_a_sleep_moves_the_edge_and_a_rule_answers_first(forecasts: Forecasts) -> None:
    forecasts.tell(question(1, 4.0))
    first = forecasts.next()
    assert (first["how"], "picture" in first) == ("rule", False)
    without = forecasts.last(1)
    assert without["how"] == "virtual time" and without["picture"]["losses"]["fresh"] > 0
    assert without["picture"]["causes"][0]["cause"] == "lateEndpoint"
    forecasts.tell(question(2, 4.0, sleeping(6), sleep=6))
    asleep = forecasts.last(2)
    assert asleep["picture"]["losses"] == {} and "seconds: 6" in asleep["patchText"]
    assert (without["edges"]["fresh"] or 0) < 1 and 5.5 < asleep["edges"]["fresh"] < 6.5


def test_a_newer_question_ends_the_answers_to_an_older_one(forecasts: Forecasts) -> None:
    forecasts.tell(question(1, 1.0), question(2, 2.0), question(3, 3.0))
    answers = [forecasts.next()]
    while not answers[-1]["done"]:
        answers.append(forecasts.next())
    assert {each["number"] for each in answers} == {3}


def test_values_that_kubernetes_refuses_are_answered_with_its_words(forecasts: Forecasts) -> None:
    grace = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}}
    both = sleeping(6)
    both["spec"]["template"]["spec"] |= grace["spec"]["template"]["spec"]
    forecasts.tell(question(1, 0.0, both, sleep=6, grace=5))
    assert "must be non-negative and less than terminationGracePeriodSeconds (5)" in forecasts.last(1)["error"]
    forecasts.tell(question(2, 0.0))
    assert "error" not in forecasts.last(2)
