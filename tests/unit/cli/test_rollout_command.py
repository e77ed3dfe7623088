"""`lastcall rollout`: what it refuses, and how a lost request is told."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from lastcall.cli.errors import UserError
from lastcall.cli.manifests import load_manifests
from lastcall.cli.options import check_propagation_nodes
from lastcall.cli.rollout import RolloutOptions, rollout
from lastcall.cli.rollout_report import tell_lost
from lastcall.cli.rollout_session import find_target
from lastcall.cluster.propagation import parse_propagation
from lastcall.timeline import kinds
from lastcall.traffic.account import LostRequest
from lastcall.traffic.outcome import Outcome

NAIVE = Path(__file__).resolve().parents[3] / "examples" / "rollout" / "naive.yaml"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--load", "0"), "write requests per second (200)"),
        (("--load", "nan"), "write requests per second (200)"),
        (("--load", "-5"), "write requests per second (200)"),
        (("--path", "healthz"), "'healthz': a path begins with /"),
        (("--output-file", "story.png"), "'story.png': a rollout is told as .html, .json or .txt"),
        (("--output-file", "story.trace.json"), "a rollout is told as .html, .json or .txt"),
        (("--slow-path", "/a b"), "'/a b': a path begins with / and has neither spaces"),
    ],
)
def test_what_asks_nothing_of_anybody_or_cannot_be_told_is_refused(arguments: tuple[str, ...], words: str) -> None:
    result = CliRunner().invoke(rollout, [str(NAIVE), *arguments])
    assert result.exit_code == 2 and words in result.output


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


def test_of_several_ports_one_must_be_chosen(tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all(NAIVE.read_text()))
    objects[1]["spec"]["ports"] = [{"name": "web", "port": 80}, {"name": "admin", "port": 81}]
    (tmp_path / "two.yaml").write_text(yaml.safe_dump_all(objects))
    manifests = load_manifests([str(tmp_path / "two.yaml")])
    with pytest.raises(UserError, match="the TCP ports of Service naive are 80 web, 81 admin: choose with --port"):
        find_target(manifests, RolloutOptions())
    assert find_target(manifests, RolloutOptions(port="admin")).port["port"] == 81


def test_a_delay_of_a_node_that_there_will_not_be_is_refused() -> None:
    check_propagation_nodes(parse_propagation(["node-2:watch=1s"]), 2)
    with pytest.raises(UserError, match=r"--propagation node-3:…: there is no such node: the cluster has node-1"):
        check_propagation_nodes(parse_propagation(["node-3:watch=1s"]), 1)


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
