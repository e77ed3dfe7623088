"""One end as a trace."""

import pytest
from story_samples import samples

from lastcall.trace.exporting.spans import spans_of


def told(name, position=0):
    return spans_of(samples()[name][position])


@pytest.mark.parametrize("name", ["graceful", "sigkill", "sidecar", "overrun", "hostile", "chatty"])
def test_a_trace_has_one_root_and_its_children_have_times(name):
    spans = told(name)
    root = spans[0]
    assert root.parent is None and root.name == "DELETE"
    assert {each.id.trace for each in spans} == {root.id.trace}
    assert all(each.parent == root.id for each in spans[1:])
    assert len({each.id.span for each in spans}) == len(spans)
    assert all(0 < each.start_ns <= each.end_ns for each in spans)


def test_hook_drain_network_and_unmount_are_spans_in_order():
    spans = {each.name: each for each in told("sigkill")}
    assert list(spans) == ["DELETE", "preStop", "drain", "endpoint", "network", "unmount"]
    assert spans["preStop"].end_ns == pytest.approx(spans["drain"].start_ns, abs=10_000_000)
    assert (spans["drain"].end_ns - spans["drain"].start_ns) / 1e9 == pytest.approx(8.0, abs=0.1)
    assert spans["network"].start_ns >= spans["drain"].end_ns


def test_a_span_links_to_what_led_to_it():
    spans = {each.name: each for each in told("sigkill")}
    assert [(link.to, link.why) for link in spans["drain"].links] == [(spans["preStop"].id, "preStop")]
    assert spans["preStop"].links == ()  # the DELETE is its parent already


def test_a_kill_is_an_error_that_says_why_and_has_the_fix():
    spans = {each.name: each for each in told("sigkill")}
    assert "SIGKILL" in spans["DELETE"].failed and "grace over" in spans["drain"].failed
    assert spans["drain"].attributes["lastcall.killed_by"] == "grace over"
    findings = {each.attributes["id"]: each for each in spans["DELETE"].events if each.name == "finding"}
    assert "terminationGracePeriodSeconds" in str(findings["killed"].attributes["fix"])
    assert [each.failed for each in told("graceful")] == [""] * len(told("graceful"))


def test_a_hook_that_outlived_its_time_is_an_error():
    hook = next(each for each in told("overrun") if each.name == "preStop")
    assert hook.failed and hook.attributes["lastcall.hook.outcome"] == "outlived"


def test_the_same_story_told_twice_is_the_same_trace():
    assert told("sidecar") == told("sidecar")


def test_every_text_can_be_sent():
    for spans in (told("hostile"), told("chatty")):
        for span in spans:
            texts = [span.name, span.failed, *(str(value) for value in span.attributes.values())]
            texts += [str(value) for event in span.events for value in event.attributes.values()]
            for text in texts:
                text.encode()
                assert len(text) <= 1100
        assert len(spans[0].events) <= 200


def test_a_drain_whose_end_nobody_saw_says_so(ending_of, container):
    ending = ending_of(container(at=None, code=None), gone=9.0)
    drain = next(each for each in spans_of(ending) if each.name == "drain")
    assert drain.attributes["lastcall.end_seen"] is False
    assert (drain.end_ns - drain.start_ns) / 1e9 == pytest.approx(7.0)


def test_without_records_there_is_no_trace(ending_of, container):
    assert spans_of(ending_of(container(), entries=())) == []
