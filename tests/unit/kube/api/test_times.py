"""Times are read and printed as by Go, and nothing that is stored overflows."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.protobuf.encoding import encode_envelope
from lastcall.kube.api.resources import LEASES, NODES, PODDISRUPTIONBUDGETS, PODS
from lastcall.kube.api.schema.checks import DecodeError
from lastcall.kube.api.schema.decoding import decode_fields, decoded_copy
from lastcall.kube.api.table.text import since
from lastcall.kube.api.text.times import FIRST, LAST, from_unix, later, parse_rfc3339, time_text, unix_time
from lastcall.kube.controllers.cronjob.schedule import parse_schedule
from lastcall.world.clock import rfc3339

RECORDED = json.loads((Path(__file__).parent / "data" / "times.json").read_bytes())
"""[form, text, how it came back or null, the error or null], as Kubernetes 1.36.2 answered a Node and a Lease."""
EDGES = (
    "0000-01-01T00:00:00+05:00",
    "0001-01-01T00:00:00+05:00",
    "0001-01-01T00:00:01Z",
    "9999-12-31T23:59:59-05:00",
    "9999-12-31T23:59:59Z",
    "10000-01-01T04:59:59Z",
    "-0001-12-31T19:00:00Z",
    "2026-01-02t03:04:05z",
)


def object_with(form: str, text: Any) -> tuple[Any, dict[str, Any]]:
    if form == "microtime":
        return LEASES, {"metadata": {"name": "x"}, "spec": {"renewTime": text}}
    return NODES, {"metadata": {"name": "x"}, "spec": {"taints": [{"key": "a", "timeAdded": text}]}}


def time_of(obj: dict[str, Any]) -> Any:
    spec = obj.get("spec") or {}
    return spec["taints"][0].get("timeAdded") if "taints" in spec else spec.get("renewTime")


@pytest.mark.parametrize(("form", "text", "printed", "error"), RECORDED)
def test_a_time_is_read_and_printed_as_kubernetes_does(
    form: str, text: str, printed: str | None, error: str | None
) -> None:
    resource, obj = object_with(form, text)
    if error is not None:
        assert decoded_copy(resource, obj) is None
        with pytest.raises(DecodeError) as found:
            decode_fields(resource, obj)
        assert str(found.value) == error
        return
    copied = decoded_copy(resource, obj)
    assert copied is not None
    assert decode_fields(resource, obj) == []
    assert time_of(obj) == time_of(copied) == printed
    assert decode_fields(*object_with(form, printed)) == [], "what was printed is read again"


def test_a_time_in_a_map_and_one_that_an_encoder_writes_as_null_are_canonical_too() -> None:
    zero = "0001-01-01T00:00:00Z"
    budget = {"status": {"disruptedPods": {"p": "9999-12-31T23:59:59-05:00", "q": zero}}, "unknown": 1}
    assert decode_fields(PODDISRUPTIONBUDGETS, budget) == ['unknown field "unknown"']
    assert budget["status"]["disruptedPods"] == {"p": "10000-01-01T04:59:59Z", "q": None}
    pod = {"status": {"startTime": zero, "conditions": [{"type": "A", "status": "True", "lastTransitionTime": zero}]}}
    decode_fields(PODS, pod)
    condition = {"type": "A", "status": "True", "lastTransitionTime": None, "lastProbeTime": None}
    assert pod["status"] == {"conditions": [condition]}


@pytest.mark.parametrize("text", EDGES)
def test_a_stored_time_is_the_nearest_that_there_is(text: str) -> None:
    moment = parse_rfc3339(text)
    assert FIRST <= moment <= LAST
    assert rfc3339(moment)
    assert FIRST <= later(moment, 120) <= LAST
    assert rfc3339(later(moment, 2**63)) == "9999-12-31T23:59:59Z"
    assert later(moment, -(2**63)) == FIRST
    assert since(text, datetime(2026, 1, 1, tzinfo=UTC))


def test_no_time_is_the_first_one() -> None:
    assert parse_rfc3339(None) == parse_rfc3339("") == FIRST


@pytest.mark.parametrize("text", ["x", "2026-01-02T03:04:05", "2026-13-02T03:04:05+05:00", "\0", "9" * 5000])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_rfc3339(text)


@given(some.integers(-62167219200, 253402300799), some.integers(0, 999_999_999), some.booleans())
def test_a_printed_time_is_the_same_time(seconds: int, nanos: int, micro: bool) -> None:
    text = time_text(seconds, nanos, micro=micro)
    if text:
        assert unix_time(text) == (seconds, nanos // 1000 * 1000 if micro else 0)
        if FIRST.timestamp() <= seconds:
            assert parse_rfc3339(text) - FIRST == from_unix(seconds) - FIRST + timedelta(
                microseconds=nanos // 1000 if micro and seconds < LAST.timestamp() else 0
            )


@pytest.mark.parametrize("text", [text for text in EDGES if not text.endswith("z")])
def test_a_time_of_any_year_goes_through_protobuf(text: str) -> None:
    resource, obj = object_with("time", text)
    decode_fields(resource, obj)
    body = {"kind": "Node", "apiVersion": "v1", **obj}
    assert time_of(decode_envelope(encode_envelope(body))) == time_of(obj)


@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 31 12 *", "@every 1s", "@yearly", "0 0 30 2 *"])
@pytest.mark.parametrize("zone", [None, "America/Los_Angeles", "Pacific/Kiritimati"])
def test_a_schedule_after_any_time_does_not_overflow(schedule: str, zone: str | None) -> None:
    when = parse_schedule(schedule, zone)
    for text in EDGES:
        after = parse_rfc3339(text).timestamp()
        when.next(after)
        when.last(after, parse_rfc3339("2026-01-01T00:00:00Z").timestamp())
