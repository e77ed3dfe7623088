"""`lastcall rollout`: what it refuses, and how a lost request is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lastcall.cli.rollout.command import rollout
from lastcall.cli.run.option_values import check_propagation_nodes
from lastcall.errors import UserError
from lastcall.experiment.load_notes import of_balance
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.rollout.lost import alike, tell_lost
from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.experiment.rollout.published import Carried
from lastcall.experiment.rollout.target import find_target
from lastcall.kube.cluster.egress import pair
from lastcall.kube.cluster.propagation import parse_propagation
from lastcall.manifests.read import Manifest, load_manifests
from lastcall.records import kinds
from lastcall.traffic.account import Account
from lastcall.traffic.load import Load
from lastcall.traffic.lost_request import LostRequest
from lastcall.traffic.outcome import Kind, Outcome
from lastcall.traffic.shares import Balance
from lastcall.world.clock import RealClock, monotonic

NAIVE = Path(__file__).resolve().parents[4] / "examples" / "rollout" / "naive.yaml"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--load", "0"), "write requests per second (200)"),
        (("--load", "nan"), "write requests per second (200)"),
        (("--load", "-5"), "write requests per second (200)"),
        (("--path", "healthz"), "'healthz': a path begins with /"),
        (("--output-file", "story.png"), "'story.png': the formats of rollout are .html, .json, .xml (JUnit) and .txt"),
        (("--output-file", "story.trace.json"), "the formats of rollout are .html, .json, .xml (JUnit) and .txt"),
        (("--load", "websockets=3"), "kinds: fresh, keep-alive, slow, tcp, stream, websocket, http2"),
        (("--stream-length", "0"), "0 is too short: write 30s, 1m30s, 500ms or plain seconds, from 100ms to 1h"),
        (("--websocket-path", "ws"), "'ws': a path begins with /"),
        (("--http2-connections", "0"), "0 is too few: give a whole number of connections from 1 to 1000"),
        (("--from", "outside"), "'node', 'pod', 'published', 'balancer'"),
        (("--slow-path", "/a b"), "'/a b': a path begins with / and has neither spaces"),
    ],
)
def test_what_asks_nothing_of_anybody_or_cannot_be_told_is_refused(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(rollout, [str(NAIVE), *arguments])
    assert result.exit_code == 2 and words in result.output


@pytest.mark.parametrize("option", ["--apply-advice", "--find-safe", "--keep-on-failure"])
def test_what_starts_clusters_is_not_for_somebody_elses_and_the_way_to_it_is_told(option: str) -> None:
    result = CliRunner().invoke(rollout, ["deployment/web", "--context", "theirs", "--ui", option])
    assert result.exit_code == 2
    assert f"{option} works on clusters that lastcall starts, not on the cluster of --context" in result.output
    assert "fix: --from-cluster deployment/web instead of deployment/web" in result.output


@pytest.mark.parametrize("option", ["--apply-advice", "--find-safe", "--keep-on-failure", "--runs=2"])
def test_every_way_to_make_several_runs_has_a_page(option: str) -> None:
    # A file that is missing, so that nothing begins.
    result = CliRunner().invoke(rollout, ["missing.yaml", "--ui", option])
    assert isinstance(result.exception, UserError) and "missing.yaml" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RolloutOptions(port="99"), "--port 99: the TCP ports of Service naive are 80"),
        (RolloutOptions(service="shop"), "--service shop: the Services that select its Pods are naive"),
    ],
)
def test_a_service_or_port_that_is_not_there_is_told_with_those_that_are(options: RolloutOptions, message: str) -> None:
    with pytest.raises(UserError) as caught:
        find_target(load_manifests([str(NAIVE)]), options)
    assert str(caught.value) == message


def changed(tmp_path: Path, spec: dict[str, Any]) -> list[Manifest]:
    """NAIVE with these fields of its Service."""
    objects = list(yaml.safe_load_all(NAIVE.read_text()))
    objects[1]["spec"] |= spec
    (tmp_path / "changed.yaml").write_text(yaml.safe_dump_all(objects))
    return load_manifests([str(tmp_path / "changed.yaml")])


def test_of_several_ports_one_must_be_chosen(tmp_path: Path) -> None:
    manifests = changed(tmp_path, {"ports": [{"name": "web", "port": 80}, {"name": "admin", "port": 81}]})
    with pytest.raises(UserError, match="the TCP ports of Service naive are 80 web, 81 admin: choose with --port"):
        find_target(manifests, RolloutOptions())
    assert find_target(manifests, RolloutOptions(port="admin")).port["port"] == 81


@pytest.mark.parametrize(
    ("kinds", "port"), [(("fresh", "keep-alive", "slow", "stream", "websocket"), 80), (("tcp",), 0)]
)
def test_of_several_ports_the_one_named_http_is_meant(tmp_path: Path, kinds: tuple[Kind, ...], port: int) -> None:
    manifests = changed(tmp_path, {"ports": [{"name": "metrics", "port": 9113}, {"name": "http", "port": 80}]})
    options = RolloutOptions(load=Load(rates=dict.fromkeys(kinds, 1.0)))
    if port:
        assert find_target(manifests, options).port["port"] == port
        assert find_target(manifests, replace(options, port="metrics")).port["port"] == 9113
        return
    with pytest.raises(UserError, match="choose with --port"):  # raw TCP has nothing to do with that name
        find_target(manifests, options)


def test_a_service_that_selects_other_pods_is_told_with_what_it_selects(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        find_target(changed(tmp_path, {"selector": {"app": "naiv", "tier": "web"}}), RolloutOptions())
    assert str(caught.value) == (
        "no Service selects the Pods of Deployment naive: Service naive selects app=naiv, tier=web, and its Pods have "
        "app=naive\nfix: correct spec.selector of the Service, or the labels in spec.template.metadata of Deployment "
        "naive"
    )


def test_a_service_without_a_selector_and_none_at_all_are_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Service naive selects nothing"):
        find_target(changed(tmp_path, {"selector": None}), RolloutOptions())
    manifests = [each for each in load_manifests([str(NAIVE)]) if each.resource.kind != "Service"]
    with pytest.raises(
        UserError, match="no Service selects the Pods of Deployment naive: the manifests have none"
    ) as caught:
        find_target(manifests, RolloutOptions())
    assert "fix: add a Service with spec.selector {app: naive}" in str(caught.value)


def test_of_a_headless_service_and_another_the_one_with_an_address_is_meant(tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all(NAIVE.read_text()))
    headless = {**objects[1], "metadata": {"name": "members"}, "spec": {**objects[1]["spec"], "clusterIP": "None"}}
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all([*objects, headless]))
    manifests = load_manifests([str(tmp_path / "two.yaml")])
    assert find_target(manifests, RolloutOptions()).service.obj["metadata"]["name"] == "naive"
    with pytest.raises(UserError, match="Service members is headless"):
        find_target(manifests, RolloutOptions(service="members"))
    chosen = find_target(manifests, RolloutOptions(service="members", source="balancer"))
    assert chosen.service.obj["metadata"]["name"] == "members"
    alone = [each for each in manifests if each.obj["metadata"]["name"] != "naive" or each.resource.kind != "Service"]
    with pytest.raises(UserError, match="fix: --from balancer sends to its Pods themselves"):
        find_target(alone, RolloutOptions())


def test_a_service_of_another_namespace_selects_nobody(tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all(NAIVE.read_text()))
    objects[1]["metadata"]["namespace"] = "other"
    (tmp_path / "other.yaml").write_text(yaml.safe_dump_all(objects))
    with pytest.raises(UserError, match="Service other/naive is in another namespace"):
        find_target(load_manifests([str(tmp_path / "other.yaml")]), RolloutOptions())


def test_a_delay_of_a_node_that_there_will_not_be_is_refused() -> None:
    check_propagation_nodes(parse_propagation(["node-2:watch=1s"]), 2)
    with pytest.raises(UserError, match=r"--propagation node-3:…: no such node: the cluster has node-1"):
        check_propagation_nodes(parse_propagation(["node-3:watch=1s"]), 1)


TOLD = [
    ({"age": 3.24}, "unknown", "fresh request 7: reset before bytes on a connection 3.2 s old, web-1"),
    ({"behind": "refused"}, "unknown", "reset before bytes by the published port, whose connection failed (refused)"),
    ({"kind": "websocket", "lost": "no close frame", "messages": 3, "finished": 3.0, "unanswered": "lc-7.3"}, "begun",
     "websocket 7: no close frame after 2.0 s and 3 echoed messages, web-1 (draining); the application saw it begin; "
     "message lc-7.3 was not echoed and reached the application"),
    ({"kind": "stream", "lost": "truncated", "finished": 3.0}, "unknown", "stream 7: truncated after 2.0 s, web-1"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "seen", "words"), TOLD, ids=[row[2][:20] for row in TOLD])
def test_a_lost_one_is_told_with_what_its_connection_had_behind_it(facts: dict, seen: str, words: str) -> None:
    usual = {"id": 7, "kind": "fresh", "planned": 1.0, "sent": 1.0, "finished": 1.0, "lost": "reset before bytes",
             "connection": 1, "age": 0.0, "status": 0, "served_by": "10.244.0.2"}  # fmt: skip
    lost = LostRequest(Outcome(**{**usual, **facts}), 0.5, "web-1", "draining", "cut off", ("", ""), seen, seen)
    assert words in tell_lost(lost)


def test_what_the_node_tells_of_carried_connections_completes_what_the_client_saw() -> None:
    clock = RealClock()
    carried = Carried(clock)
    at = monotonic(clock)
    carried.add(pair.Carried(port=40001, endpoint="10.244.0.2", failed=""))
    carried.add(pair.Carried(port=40002, endpoint="", failed="refused"))
    usual = {"id": 7, "kind": "fresh", "planned": at, "sent": at, "finished": at + 0.1, "connection": 1, "age": 0.0,
             "status": 0, "served_by": "", "lost": "reset before bytes"}  # fmt: skip
    first, second, third = (carried.completed(Outcome(**usual, port=port)) for port in (40001, 40002, 40003))
    assert [(each.served_by, each.behind) for each in (first, second, third)] == [
        ("10.244.0.2", ""), ("", "refused"), ("", "")]  # fmt: skip
    earlier = Outcome(**{**usual, "finished": at - 60, "port": 40001})
    assert carried.completed(earlier).served_by == ""  # the port was another connection's then


def test_uneven_balance_is_told_of_http2_with_the_reason() -> None:
    def told(kind: str, when: str = "balance", **requests: int) -> list[Note]:
        return list(of_balance(Account({}, {}, (), (), 0, 0, **{when: (Balance(kind, 4, requests),)})))

    (note,) = told("http2", a=30, b=0)
    assert "before the disruption the http2 requests of 4 connections were spread unevenly" in note.line
    assert "(a 30, b 0)" in note.text and "MAX_CONNECTION_AGE" in note.text and note.id == "connectionsPinned"
    (after,) = told("http2", "balance_after", a=30, b=0)
    assert after.text.startswith("after the disruption")
    assert told("http2", a=16, b=14) == told("http2", a=30) == told("http2", a=5, b=0) == told("fresh", a=30, b=0) == []


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (("", ""), "(draining)"),
        (
            (kinds.SOCKETS_AT_STOP, kinds.ENDPOINT_CHANGED),
            "between its stop signal and the change of its EndpointSlice",
        ),
        ((kinds.ENDPOINT_RULES_WRITTEN, ""), "after the write of the node's rules"),
        (("", kinds.DELETE_ACCEPTED), "before the DELETE"),
        ((kinds.SIGNAL_SENT, kinds.SOCKETS_AT_STOP), "at its stop signal"),
    ],
)
def test_a_lost_request_is_told_in_words(between: tuple[str, str], words: str) -> None:
    outcome = Outcome(
        id=7, kind="fresh", planned=1.0, sent=1.0, finished=1.0, lost="refused", connection=1, age=0.0, status=0,
        served_by="10.244.0.2",
    )  # fmt: skip
    lost = LostRequest(outcome, 0.5, "web-1", "draining", "late endpoint", between, "never")
    told = tell_lost(lost)
    assert told.startswith("fresh request 7: refused, web-1 (draining)") and words in told
    assert told.endswith("; the application never saw it")


def test_lost_requests_that_are_alike_are_told_once() -> None:
    def lost(number: int, at: float, pod: str = "web-1") -> LostRequest:
        outcome = Outcome(number, "fresh", at, at, at, 0, 0.0, 0, "", "refused")
        return LostRequest(outcome, at, pod, "draining", "late endpoint", (kinds.SIGNAL_SENT, ""), "never")

    found = alike([lost(1, 0.5), lost(2, 0.6), lost(3, 0.7, "web-2"), lost(4, 0.8)])
    assert [(each.first.outcome.id, each.count, each.more) for each in found] == [
        (1, 3, "and 2 more like it, until 0.800 s"),
        (3, 1, ""),
    ]
    assert alike([lost(1, 0.5), lost(2, 0.5)])[0].more == "and 1 more like it"


def test_whatever_happens_to_an_ending_pod_has_words() -> None:
    """No reader is shown the name of a record."""
    for kind in (kinds.CONNECTIONS_CLOSED, kinds.LISTENER_CLOSED, kinds.PRE_STOP_FINISHED, kinds.SANDBOX_STOPPED):
        outcome = Outcome(1, "fresh", 1.0, 1.0, 1.0, 0, 0.0, 0, "", "refused")
        assert kind not in tell_lost(LostRequest(outcome, 0.5, "web-1", "draining", "cut off", (kind, ""), "unknown"))
