"""The trace for Perfetto."""

import json

import pytest
from story_samples import samples
from trace_format import trace_problems

from lastcall.endings.render.chrome_trace import trace_document
from lastcall.records import kinds as k


def trace(endings):
    made = trace_document(endings, kubernetes_version="1.36", lastcall_version="0.1.0")
    return json.loads(json.dumps(made, allow_nan=False))


def tracks(made, pid=1):
    return {e["args"]["name"]: e["tid"] for e in made["traceEvents"] if e["name"] == "thread_name" and e["pid"] == pid}


@pytest.mark.parametrize("name", ["graceful", "sigkill", "sidecar", "overrun", "several", "hostile", "chatty"])
def test_the_trace_is_in_the_format(name):
    assert list(trace_problems(trace(samples()[name]))) == []


@pytest.mark.parametrize("name", ["graceful", "sigkill-1.36", "sigkill-1.23"])
def test_real_times_are_in_the_format_too(tapes, name):
    assert list(trace_problems(trace([tapes[name]().ending()]))) == []


def test_the_check_finds_what_is_wrong():
    made = trace(samples()["sigkill"])
    events = made["traceEvents"]
    arrow = next(e for e in events if e["ph"] == "f")
    arrow["id"] = "lost"
    next(e for e in events if e["ph"] == "X")["dur"] = 0
    events[-1]["ts"] = -1
    found = "\n".join(trace_problems(made))
    for sentence in ("arrows without both ends", "lasts 0", "at -1", "not sorted"):
        assert sentence in found


def test_every_phase_of_a_container_and_every_actor_has_a_track(tapes):
    made = trace([tapes["sigkill-1.23"]().ending()])
    names = tracks(made)
    assert [name for name in names if name.startswith("app: ")] == [
        "app: running", "app: preStop", "app: drain", "app: overrun",
    ]  # fmt: skip
    assert {"client", "apiserver", "endpointslice-controller", "kubelet", "runtime"} <= set(names)
    drain = next(e for e in made["traceEvents"] if e["ph"] == "X" and e["tid"] == names["app: drain"])
    assert drain["dur"] == pytest.approx((10 - 2.012) * 1e6)
    process = next(e for e in made["traceEvents"] if e["name"] == "process_name")
    assert process["args"]["name"] == "default/sigkill-demo was killed"


def test_signals_are_instants_and_causes_are_arrows(tapes):
    made = trace([tapes["sigkill-1.36"]().ending()])
    events = made["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "i"] == ["SIGTERM", "SIGKILL"]
    slices = {(e["tid"], e["ts"]): e["name"] for e in events if e["ph"] == "X" and e["cat"] != "phase"}
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    arrows = {
        (slices[begins[e["id"]]["tid"], begins[e["id"]]["ts"]], slices[e["tid"], e["ts"]])
        for e in events
        if e["ph"] == "f"
    }
    assert (k.DELETE_SENT, k.DELETE_ACCEPTED) in arrows
    assert (k.DELETE_ACCEPTED, k.TERMINATION_OBSERVED) in arrows
    assert (k.SIGNAL_SENT, k.PROCESS_EXITED) in arrows


def test_args_hold_facts_rule_and_evidence(tapes):
    made = trace([tapes["graceful"]().ending()])
    accepted = next(e for e in made["traceEvents"] if e["name"] == k.DELETE_ACCEPTED)
    assert accepted["args"]["facts"]["gracePeriodSeconds"] == 30
    assert accepted["args"]["rule"].endswith("delete.go:BeforeDelete")
    assert accepted["args"]["evidence"] == "observed"
    assert accepted["args"]["secondsSinceDelete"] == 0


def test_pods_share_one_clock_and_each_is_a_process():
    made = trace(samples()["several"])
    assert {e["pid"] for e in made["traceEvents"]} == {1, 2, 3, 4}


def test_the_death_of_a_process_of_the_cluster_is_told_once(new_tape):
    endings = []
    for name in ("one", "two"):
        tape = new_tape(name, uid=f"uid-{name}")
        tape.accepted()
        tape.add(1.0, "init", k.PROCESS_DIED, role="node-1", pid=4, signal=9)
        endings.append(tape.ending())
    made = trace(endings)
    assert list(trace_problems(made)) == []
    assert len([e for e in made["traceEvents"] if e["ph"] == "i" and e["s"] == "g"]) == 1
