"""The document of one Pod that the page draws."""

import json

import pytest
from story_samples import samples

from lastcall.endings.ending import build_endings
from lastcall.endings.story import PodFacts
from lastcall.records.record import Record
from lastcall.ui.steps import source_link
from lastcall.ui.story import Extent, end_row, story


def test_every_story_can_be_drawn() -> None:
    for name, endings in samples().items():
        for ending in endings:
            made = story(ending, None, ending.zero_ns + 10**9, "1.36")
            assert json.loads(json.dumps(made))["name"] == ending.pod.name, name
            numbers = {step["n"] for step in made["steps"]}
            assert all(mark["n"] in numbers for lane in made["lanes"] for mark in lane["marks"])
            assert all(step["cause"] is None or step["cause"] in numbers for step in made["steps"])
            last = max([made["end"], made["gone"] or 0.0])
            assert all(step["at"] <= last for step in made["steps"]), "the page shows the last step, too"
            assert made["now"] == 1.0 or not ending.zero_ns
            assert end_row(ending)["outcome"] == ending.outcome
            assert [each["container"] for each in end_row(ending)["exits"]] == [
                each.name for each in ending.containers if each.started
            ]


def test_each_node_s_proxy_has_a_lane_of_its_own() -> None:
    def written(number: int, node: str) -> Record:
        facts = {"node": node, "service": "d/s", "address": "10.0.0.1:80", "received": True, "receives": False}
        return Record(f"r{number}", number, number, "kube-proxy", "EndpointRulesWritten", "u", facts=facts)

    deleted = Record("r0", 1, 1, "apiserver", "DeleteAccepted", "u", facts={"gracePeriodSeconds": 30})
    records = [deleted, written(2, "node-2"), written(3, "node-1"), written(4, "node-2")]
    (ending,) = build_endings(records, [PodFacts("u", "d", "p")], kubernetes_version="1.36")
    lanes = [lane for lane in story(ending, None, 5, "1.36")["lanes"] if lane["name"] == "service proxy"]
    assert [(lane["detail"], len(lane["marks"])) for lane in lanes] == [("node-1", 1), ("node-2", 2)]


@pytest.mark.parametrize(
    ("why", "function"), [("StopContainer", "stopContainer"), ("grace over", "stopContainer"), ("exec timeout", "")]
)
def test_a_signal_has_the_rule_of_the_call_that_asked_for_it(why: str, function: str) -> None:
    """Shims load no rules, so their records name none."""
    deleted = Record("r0", 1, 1, "apiserver", "DeleteAccepted", "u", facts={"gracePeriodSeconds": 30})
    sent = Record("r1", 2, 2, "runtime", "SignalSent", "u", "app", facts={"signal": "SIGTERM", "pid": 7, "why": why})
    (ending,) = build_endings([deleted, sent], [PodFacts("u", "d", "p")], kubernetes_version="1.36")
    made = story(ending, None, 3, "1.36", Extent(others=9))
    listed = [*made["steps"], *(each for group in made["others"] for each in group["steps"])]
    (rule,) = [each["rule"] for each in listed if each["kind"] == "SignalSent"]
    assert rule.rpartition(":")[2] == function
    assert not rule or made["rules"][rule]["explain"]


def test_the_exit_of_a_process_has_the_rule_of_what_the_runtime_does_then() -> None:
    deleted = Record("r0", 1, 1, "apiserver", "DeleteAccepted", "u", facts={"gracePeriodSeconds": 30})
    ended = Record("r1", 2, 2, "container", "ProcessExited", "u", "app", facts={"exitCode": 0, "pid": 7})
    (ending,) = build_endings([deleted, ended], [PodFacts("u", "d", "p")], kubernetes_version="1.36")
    made = story(ending, None, 3, "1.36")
    (rule,) = {each["rule"] for each in made["steps"] if each["kind"] == "ProcessExited"}
    assert "exit code" in made["rules"][rule]["explain"]
    assert made["rules"][rule]["source"].endswith("/internal/cri/server/events.go")


def test_rules_of_kubernetes_and_containerd_lead_to_their_source_and_others_nowhere() -> None:
    link = source_link("pkg/kubelet/pod_workers.go:UpdatePod", "1.36")
    assert link == "https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/kubelet/pod_workers.go"
    link = source_link("containerd internal/cri/server/container_stop.go:stopContainer", "1.36")
    assert link == "https://github.com/containerd/containerd/blob/v2.0.0/internal/cri/server/container_stop.go"
    assert source_link("container_stop.go:stopContainer", "1.36") == "" == source_link("", "1.36")


def test_the_last_step_is_not_after_the_end_by_rounding() -> None:
    deleted = Record("r0", 1, 1, "apiserver", "DeleteAccepted", "u", facts={"gracePeriodSeconds": 30})
    gone = Record("r1", 8_223_126_001, 8_223_126_001, "apiserver", "ObjectRemoved", "u")
    (ending,) = build_endings([deleted, gone], [PodFacts("u", "d", "p")], kubernetes_version="1.36")
    made = story(ending, None, 9 * 10**9, "1.36")
    assert made["steps"][-1]["kind"] == "ObjectRemoved"
    assert made["steps"][-1]["at"] <= max(made["end"], made["gone"])
