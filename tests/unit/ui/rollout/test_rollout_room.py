"""A rollout on the page: what is drawn of requests and Pods, and what may be asked when."""

from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.account import account
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.through_api import Traced
from lastcall.ui.rollout.accounted import account_to_wire
from lastcall.ui.rollout.followed import lives_to_wire, traced_to_wire
from lastcall.ui.rollout.room import RolloutRoom
from lastcall.ui.rollout.values import Values
from lastcall.world import wire
from lastcall.world.clock import RealClock

WORKLOAD: dict[str, Any] = {
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "app"}]}}},
}
STATE: dict[str, Any] = {
    "number": 1, "what": "Deployment web", "service": "web", "disrupt": "rollout", "source": "node",
    "rates": ["fresh"], "workload": WORKLOAD, "hops": {"watch": 1.0}, "delayed": 1.0, "sleepHooks": True, "port": 80,
    "containers": ["app"], "began": 10.0,
}  # fmt: skip


class Asked:
    """A forecaster that notes what it is asked."""

    def __init__(self) -> None:
        self.questions: list[tuple[int, Values, dict[str, Any], dict[str, Any]]] = []

    def ask(self, number: int, values: Values, patch: dict[str, Any], measured: dict[str, Any]) -> None:
        self.questions.append((number, values, patch, measured))


def room() -> tuple[RolloutRoom, Asked, list[tuple[dict[str, Any], str]]]:
    again: list[tuple[dict[str, Any], str]] = []
    made = RolloutRoom(RealClock(), lambda patch, delays: again.append((patch, delays)))
    made.forecaster = asked = Asked()
    return made, asked, again


def outcome(number: int, sent: float, lost: Any = "") -> list[Any]:
    finished = sent + (3.0 if lost == "connect timeout" else 0.01)
    status = 0 if lost else 200
    return Outcome(number, "fresh", sent, sent, finished, number, 0.0, status, "10.244.0.2", lost).to_wire()


def records() -> list[Record]:
    """Of a Pod that is deleted at 10 s and exits at 10.2 s; a node hears of it at 11 s."""
    facts: list[tuple[float, str, str, dict[str, Any]]] = [
        (1.0, kinds.POD_CREATED, "", {"namespace": "default", "name": "web-1"}),
        (1.5, kinds.NETWORK_ATTACHED, "", {"ip": "10.244.0.2"}),
        (2.0, kinds.ENDPOINT_RULES_WRITTEN, "", {"node": "node-1", "service": "web", "address": "10.244.0.2",
                                                 "received": False, "receives": True, "ready": True}),
        (10.0, kinds.DELETE_ACCEPTED, "", {"gracePeriodSeconds": 30}),
        (10.1, kinds.SIGNAL_SENT, "app", {"signal": "SIGTERM", "why": "StopContainer", "pid": 7}),
        (10.2, kinds.PROCESS_EXITED, "app", {"exitCode": 0, "pid": 7}),
    ]  # fmt: skip
    return [
        Record(str(index), int(at * 1e9), 0, "kubelet", kind, "u", container, facts=told)
        for index, (at, kind, container, told) in enumerate(facts)
    ]


def test_requests_are_columns_and_lost_ones_count_from_the_disruption_on() -> None:
    shown, _, _ = room()
    shown.update({**STATE, "began": None})
    shown.outcomes([outcome(1, 9.0), outcome(2, 9.5, "refused")])
    shown.draw()
    assert (shown.document["began"], shown.document["controlLost"], shown.document["lost"]) == (False, 1, [])
    shown.update(STATE)
    shown.records(records())
    shown.outcomes([outcome(3, 10.05), outcome(4, 10.5, "connect timeout")])
    shown.draw()
    told = shown.document
    assert (told["began"], told["controlLost"]) == (True, 1)
    columns = sum(sum(counts) for strip in told["strips"] for _, *counts in strip["columns"])
    assert (columns, told["totals"], told["controlTotal"], told["unmeasured"]) == (4, {"fresh": 2}, 2, 0)
    assert [(each["id"], each["cause"], round(each["at"], 2)) for each in told["lost"]] == [(4, "lateEndpoint", 0.5)]
    assert told["causes"][0]["count"] == 1 and told["losses"] == {"fresh": 1}
    (strip,) = told["strips"]
    assert sum(row[1] for row in strip["columns"]) == 2 and sum(row[3] for row in strip["columns"]) == 2
    (pod,) = told["pods"]
    assert (pod["name"], pod["deleted"], pod["exited"]) == ("web-1", 0.0, 0.2)


def test_a_request_that_was_not_measured_is_not_drawn_as_lost() -> None:
    """The client itself was held up: the heading of the strip would name more losses than the account."""
    shown, _, _ = room()
    shown.update(STATE)
    shown.records(records())
    held_up = Outcome(2, "fresh", 10.02, 10.02, 13.02, 2, 0.0, 0, "10.244.0.9", "connect timeout", 0.9)
    shown.outcomes([outcome(1, 10.01), held_up.to_wire()])
    shown.draw()
    told = shown.document
    assert (told["unmeasured"], told["losses"], told["totals"]) == (1, {}, {"fresh": 1})
    (strip,) = told["strips"]
    became = [sum(row[place] for row in strip["columns"]) for place in range(1, 5)]
    assert became == [1, 0, 0, 1], "answered, carried on elsewhere, lost, not measured"


def printed(number: int, text: str, **facts: Any) -> Record:
    return Record(f"out-{number}", int(1e10), 0, "runtime", kinds.OUTPUT, "u", "app", facts={"text": text, **facts})


def causes_of(shown: RolloutRoom) -> list[tuple[int, str]]:
    shown.draw()
    return [(each["id"], each["cause"]) for each in shown.document["lost"]]


def test_what_the_pods_printed_tells_a_request_in_the_accept_queue_from_one_in_flight() -> None:
    shown, _, _ = room()
    shown.update({**STATE, "over": True})
    shown.records(records())
    shown.records([printed(1, "lc-1 begun"), printed(2, "lc-1 answered"), printed(3, "lc-2 begun")])
    reset = [outcome(number, at, "reset before bytes") for number, at in ((2, 10.11), (3, 10.13))]
    shown.outcomes([outcome(1, 10.01), *reset])
    assert causes_of(shown) == [(2, "cutOff"), (3, "neverRead")]
    shown.records([printed(4, "", dropped=7)])
    assert causes_of(shown) == [(2, "cutOff"), (3, "cutOff")], "an application may have printed what is missing"
    shown.update({**STATE, "over": True, "number": 2})
    shown.records(records())
    shown.outcomes([outcome(1, 10.01), *reset])
    assert causes_of(shown) == [(2, "cutOff"), (3, "cutOff")], "nothing was printed in the second experiment"


def test_when_an_experiment_is_over_its_page_says_what_its_command_says() -> None:
    """The command may know more: what a load balancer was refused, or what came too late for the page."""
    shown, asked, _ = room()
    shown.update(STATE)
    shown.records(records())
    lost = outcome(2, 10.12, "reset before bytes")
    shown.outcomes([outcome(1, 9.0), lost])
    assert causes_of(shown) == [(2, "cutOff")]
    life = pod_life("u", "web-1", "10.244.0.2", ready=2.0, deleted=10.0, term=10.1, exited=10.2)
    those = [Outcome.from_wire(each) for each in (outcome(1, 9.0), lost, outcome(3, 10.3))]
    found = account(those, [life], ["lc-1 begun", "lc-3 begun"], 10.0)
    shown.update({**STATE, "over": True, "account": wire.decode(wire.encode(account_to_wire(found)))})
    assert causes_of(shown) == [(2, "neverRead")]
    told = shown.document
    assert (told["totals"], told["losses"]) == ({"fresh": 2}, {"fresh": 1})
    assert (told["controlTotal"], told["controlLost"], told["unmeasured"]) == (1, 0, 0)
    assert told["causes"][0]["atMost"] == "97 %"
    shown.what_if({})
    assert asked.questions, "how Pods ended is measured from the same account"


def test_a_new_experiment_begins_with_an_empty_picture() -> None:
    shown, _, _ = room()
    shown.update(STATE)
    shown.records(records())
    shown.outcomes([outcome(1, 10.5)])
    shown.draw()
    version = shown.version
    shown.update({**STATE, "number": 2, "began": None})
    shown.draw()
    assert shown.version == version + 1
    assert (shown.document["strips"], shown.document["pods"]) == ([], [])


def test_nothing_is_predicted_before_a_pod_has_ended_and_only_the_latest_answer_counts() -> None:
    shown, asked, _ = room()
    with pytest.raises(LookupError, match="no rollout"):
        shown.what_if({})
    shown.update(STATE)
    shown.draw()
    assert not shown.document["canForecast"]
    with pytest.raises(LookupError, match="no Pod has ended yet"):
        shown.what_if({"sleep": 3})
    shown.records(records())
    shown.outcomes([outcome(1, 10.05)])
    assert (shown.what_if({"sleep": 3}), shown.what_if({"sleep": 4})) == (1, 2)
    _, values, patch, measured = asked.questions[-1]
    assert (values.sleep, values.hops["watch"]) == (4, 1.0)
    assert patch["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]["sleep"] == {"seconds": 4}
    assert round(measured["end"]["drains"], 3) == 0.1 and measured["kinds"][0]["kind"] == "fresh"
    shown.forecast({"number": 1, "done": True})
    shown.draw()
    assert shown.document["forecast"] is None
    shown.forecast({"number": 2, "done": True})
    shown.draw()
    assert shown.document["forecast"] == {"number": 2, "done": True}


def test_another_run_is_asked_for_only_when_none_goes_on() -> None:
    shown, _, again = room()
    shown.update(STATE)
    with pytest.raises(LookupError, match="an experiment is running"):
        shown.run_again({"sleep": 3})
    shown.update({**STATE, "idle": True})
    with pytest.raises(ValueError, match="no patch"):
        shown.run_again({"advice": True})
    shown.run_again({"grace": 60, "hops": {"watch": 2.5, "kernel": 0.5}})
    patch = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 60}}}}
    assert again == [(patch, "watch=2.5s,kernel=0.5s")]
    shown.update({**STATE, "idle": True, "patch": {"spec": {}}})
    shown.run_again({"advice": True})
    assert again[-1] == ({"spec": {}}, "watch=1s")


def test_on_somebodys_cluster_causes_are_concluded_from_bounds_and_nothing_is_predicted_or_changed() -> None:
    shown, asked, again = room()
    theirs = {"context": "prod", "here": "lastcall rollout --from-cluster deployment/web --context prod --ui"}
    pods = [
        pod_life("u", "web-1", "10.244.0.2", ready=1.0, deleted=Moment(10.0, 10.1), term=Moment(10.0, 10.1),
                  exited=Moment(10.1, 10.2)),
        pod_life("v", "web-2", "10.244.0.3", ready=1.0),
    ]  # fmt: skip
    lives = lives_to_wire([pod_life("u", "web-1", "10.244.0.2", ready=1.0, deleted=10.05, exited=10.2)])
    known = {"theirs": theirs, "lives": lives, "traced": traced_to_wire(Traced(pods, 5.0, 0.001, probed=True))}
    shown.update({**STATE, **known})
    shown.outcomes([outcome(1, 9.0), outcome(2, 10.5, "refused")])
    shown.draw()
    told = shown.document
    assert [(each["cause"], each["pod"]) for each in told["lost"]] == [("lateEndpoint", "web-1")]
    assert (told["theirs"], told["canForecast"]) == (theirs, False)
    with pytest.raises(LookupError, match="--from-cluster deployment/web"):
        shown.what_if({})
    shown.update({**STATE, **known, "idle": True, "patch": {"spec": {}}})
    for changing in ({"advice": True}, {"grace": 5}):
        with pytest.raises(ValueError, match="change it with kubectl"):
            shown.run_again(changing)
    shown.run_again({})
    assert again == [({}, "")] and asked.questions == []
