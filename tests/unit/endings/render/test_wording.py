"""Words for records."""

from dataclasses import replace

import pytest

from lastcall.endings.render.lines import live_body, live_head
from lastcall.records import kinds
from lastcall.records.explain import explain
from lastcall.records.hook_text import hook_failure
from lastcall.records.memory import MemoryRecorder
from lastcall.records.record import Record
from lastcall.records.rules import SAYS
from lastcall.records.signal_names import signal_name
from lastcall.records.text import printable
from lastcall.records.words import words_for
from lastcall.world.clock import RealClock

ALL_KINDS = [value for name, value in vars(kinds).items() if name.isupper() and isinstance(value, str)]


def _record(kind, container="", **facts):
    return Record("a-b-1", 0, 0, "runtime", kind, "u", container, "", facts)


def test_every_kind_has_words_even_without_its_facts():
    for kind in ALL_KINDS:
        words = words_for(_record(kind))
        assert words.text
        assert words.text != kind or kind == "Killing"


def test_a_live_line_has_time_actor_container_and_words():
    record = _record(kinds.SIGNAL_SENT, "web", signal=15, pid=7, containerPid=1, why="StopContainer")
    line = f"{live_head(record, 3.0214)}  {live_body(record)}"
    assert line == "   +3.021s  runtime        web: SIGTERM → PID 1 (StopContainer)"
    assert live_body(record, "shop").startswith("shop web: SIGTERM")
    inferred = replace(record, evidence="inferred")
    assert live_body(inferred) == "web: SIGTERM → PID 1 (StopContainer) (inferred)"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"pid": 4711, "containerPid": 1}, "SIGTERM → PID 1 (StopContainer)"),
        ({"pid": 4711, "containerPid": 8}, "SIGTERM → PID 8 (StopContainer)"),
        ({"pid": 4711}, "SIGTERM → pid 4711 of the node (StopContainer)"),
        ({"pid": 4711, "containerPid": 0}, "SIGTERM → pid 4711 of the node (StopContainer)"),
        ({}, "SIGTERM → its PID 1 (StopContainer)"),
        ({"pid": 4711, "containerPid": 1, "exiting": True}, "SIGTERM → PID 1, which was already ending"),
        ({"pid": 4711, "why": "exec timeout"}, "SIGTERM → exec, pid 4711 of the node (exec timeout)"),
    ],
)
def test_a_number_of_a_process_is_that_of_the_container_or_says_that_it_is_the_node_s(facts, said):
    record = _record(kinds.SIGNAL_SENT, "web", **({"signal": "SIGTERM", "why": "StopContainer"} | facts))
    assert words_for(record).text == said
    started = _record(kinds.PROCESS_STARTED, "web", exe="/bin/sh", **facts)
    who = {"pid", "containerPid"} & {key for key, value in facts.items() if value}
    wanted = f"PID {facts.get('containerPid')}, /bin/sh" if "containerPid" in who else "pid 4711 of the node, /bin/sh"
    assert words_for(started).text == (f"process started: {wanted}" if who else "process started")


def test_long_and_dangerous_text_is_cut_and_escaped():
    assert printable("a\tb\x1b[0m\u202e") == "a    b\\x1b[0m\\u202e"
    assert printable("x" * 500) == "x" * 400 + "… (100 more characters)"


def test_signals_have_names_whatever_form_they_come_in():
    assert [signal_name(value) for value in (15, "SIGTERM", "TERM", None, "", 0, 63)] == [
        "SIGTERM", "SIGTERM", "SIGTERM", None, None, None, "signal 63",
    ]  # fmt: skip


def test_a_rule_is_explained_whatever_its_path_begins_with():
    assert explain("pkg/kubelet/pod_workers.go:UpdatePod") == SAYS["pod_workers.go:UpdatePod"]
    assert explain("containerd internal/cri/server/container_stop.go:stopContainer")
    assert explain("unknown.go:Nothing") == ""
    assert explain("") == ""


def test_the_memory_recorder_gives_every_record_its_own_id_and_shares_one_list():
    recorder = MemoryRecorder("kubelet", RealClock())
    other = recorder.for_actor("runtime")
    ids = [recorder.record(kinds.KILLING), other.record(kinds.SIGNAL_SENT), recorder.record(kinds.KILLING)]
    assert len(set(ids)) == 3
    assert [record.actor for record in recorder.records] == ["kubelet", "runtime", "kubelet"]
    assert other.records is recorder.records


def test_a_failed_hooks_message_is_reduced_to_what_a_person_needs():
    message = (
        'Exec lifecycle hook ([nope]) for Container "app" in Pod "web_default(u)" failed - error: failed to exec in '
        'container: failed to start exec "e84": OCI runtime exec failed: exec failed: unable to start container '
        'process: exec: "nope": executable file not found in $PATH: unknown, message: ""'
    )
    assert hook_failure(message) == 'exec: "nope": executable file not found in $PATH'
    http = 'HTTP lifecycle hook (/stop) for Container "c" in Pod "p_d(u)" failed - error: '
    http += 'Get "http://10.0.0.1:1/stop": EOF'
    assert hook_failure(http) == 'Get "http://10.0.0.1:1/stop": EOF'
    assert hook_failure("plain") == "plain"
    assert hook_failure("") == ""
