"""Numbers, percentages, durations, schedules and quantities are read as by Go: bounded, in ASCII, with its errors."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.quantity import (
    Quantity,
    QuantityError,
    canonical,
    canonical_in_list,
    parse_quantity,
    six_decimals,
)
from lastcall.kube.api.resources import DAEMONSETS, DEPLOYMENTS, PODDISRUPTIONBUDGETS
from lastcall.kube.api.scheduling import matches_node
from lastcall.kube.api.schema.checks import DecodeError, check_fields
from lastcall.kube.api.selectors import parse_label_selector
from lastcall.kube.api.text.cron import ScheduleError, parse
from lastcall.kube.api.text.numbers import (
    NumberError,
    int_of,
    parse_duration,
    parse_int,
    parse_uint,
    percent_of,
    scaled,
)
from lastcall.kube.api.validation import validate_create
from lastcall.kube.api.validators.jobs.specs import schedule_problems
from lastcall.kube.apiserver.strategies.workloads import DaemonSetStrategy
from lastcall.kube.apiserver.wire.options import parse_delete_options, parse_resource_version
from lastcall.kube.controllers.deployment.revisions import revision_of
from lastcall.kube.controllers.deployment.rolling import max_surge, max_unavailable
from lastcall.kube.controllers.job.indexes import Indexes
from lastcall.kube.controllers.job.pods import all_index_failures, completion_index
from lastcall.kube.controllers.replicaset.ranking import deletion_cost
from lastcall.kube.controllers.statefulset.decide import parent_and_ordinal

LONG = "9" * 5000


def short(value: object) -> str:
    return ascii(value)[:30]


NO_NUMBERS = ("", " 1", "1 ", "1_0", "٣", "²", "0x1", "1.0", "1e3", "--1", "+-1", "+", "x", "1\n")
SCHEDULES = json.loads((Path(__file__).parent / "data" / "schedules.json").read_bytes())
"""[schedule, errors], as Kubernetes 1.36.2 answered a CronJob."""


@pytest.mark.parametrize(
    ("text", "bits", "number"),
    [
        ("0", 64, 0), ("-0", 64, 0), ("+5", 64, 5), ("007", 64, 7), ("0" * 5000 + "7", 64, 7),
        ("9223372036854775807", 64, 2**63 - 1), ("-9223372036854775808", 64, -(2**63)),
        ("2147483647", 32, 2**31 - 1), ("-2147483648", 32, -(2**31)),
    ],
    ids=short,
)  # fmt: skip
def test_a_number_is_read(text: str, bits: int, number: int) -> None:
    assert parse_int(text, bits) == int_of(text, bits) == number


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_in_go_is_none(text: str) -> None:
    with pytest.raises(NumberError, match="invalid syntax"):
        parse_int(text)
    assert int_of(text) is None


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", LONG, "-" + LONG], ids=short)
def test_a_number_of_more_than_64_bits_is_out_of_range(text: str) -> None:
    with pytest.raises(NumberError, match="value out of range"):
        parse_int(text)
    assert int_of("2147483648", 32) is None


def test_a_number_without_sign_has_64_bits_of_its_own() -> None:
    assert parse_uint("18446744073709551615") == 2**64 - 1
    for text, why in (("18446744073709551616", "out of range"), ("+1", "syntax"), ("-0", "syntax"), (LONG, "range")):
        with pytest.raises(NumberError, match=why):
            parse_uint(text)


def test_a_share_is_rounded_and_never_beyond_32_bits() -> None:
    assert [scaled("25%", 10, up=up) for up in (True, False)] == [3, 2]
    assert scaled(7, 10, up=True) == 7
    assert scaled(None, 10, up=True) == scaled("x", 10, up=True) == scaled("٣%", 10, up=True) == 0
    assert scaled(f"{LONG}%", 10, up=True) == 2**31 - 1
    assert (percent_of("0" * 5000 + "1%"), percent_of(f"{LONG}%")) == (1, 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0), ("+0", 0), ("1h", 3600 * 10**9), ("1h30m", 5400 * 10**9), ("1.5h", 5400 * 10**9), (".5s", 5 * 10**8),
        ("1.s", 10**9), ("-1.5h", -5400 * 10**9), ("1us", 1000), ("1\u00b5s", 1000), ("1\u03bcs", 1000), ("3ns", 3),
        ("9223372036854775807ns", 2**63 - 1), ("-9223372036854775808ns", -(2**63)),
        ("0.100000000000000000000h", 360 * 10**9),
        ("0.3333333333333333333h", 1200 * 10**9), ("39h9m14.425s", 140954425 * 10**6),
    ],
)  # fmt: skip
def test_a_duration_is_read(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", 'time: invalid duration ""'), ("3", 'time: missing unit in duration "3"'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'), ("1.1.1h", 'time: missing unit in duration "1.1.1h"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'), ("٣h", 'time: invalid duration "\\xd9\\xa3h"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9223372036s854775808ns", 'time: invalid duration "9223372036s854775808ns"'),
        ("1" + "0" * 400 + "h", f'time: invalid duration "1{"0" * 400}h"'),
    ],
    ids=short,
)  # fmt: skip
def test_what_is_no_duration_is_refused_in_gos_words(text: str, why: str) -> None:
    with pytest.raises(NumberError) as found:
        parse_duration(text)
    assert str(found.value) == why


@pytest.mark.parametrize(("schedule", "errors"), SCHEDULES)
def test_a_schedule_is_read_as_by_kubernetes(schedule: str, errors: list[str]) -> None:
    assert schedule_problems(schedule) == errors
    if not errors and "TZ" not in schedule:
        parse(schedule)


def test_a_schedule_never_takes_long_or_much_room() -> None:
    for schedule in (f"@every 1{'0' * 5000}h", f"*/{LONG} * * * *", f"{LONG} * * * *", f"1-{LONG} * * * *"):
        with pytest.raises(ScheduleError):
            parse(schedule)
    assert parse("*/9223372036854775807 * * * *")[0].values == frozenset({0})  # type: ignore[index]
    assert parse("@every -1h") == parse("@every 1ns") == 1


# -- quantities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1e19", "10e18"), ("1e30", "1e30"), ("10E", "10E"), ("1e1000", "10e999"), ("9" * 40, "9" * 40),
        ("8Ei", str(2**63 - 1)),
        ("9223372036854775808", "9223372036854775808"), ("9000Ei", str(2**63 - 1)), ("9" * 900 + "Ki", str(2**63 - 1)),
        ("1e-1000", "1e-9"), ("1e-2147483648", "1e-9"), ("0." + "1" * 900, "111111112n"), ("0e1000", "0"), (" 1 ", "1"),
    ],
    ids=short,
)  # fmt: skip
def test_an_extreme_quantity_is_kept_exactly(text: str, printed: str) -> None:
    assert canonical(text) == printed
    assert canonical(printed) == printed
    quantity = parse_quantity(text)
    assert max(abs(quantity.milli), abs(quantity.whole)) < 2**63


@pytest.mark.parametrize(
    "text",
    [LONG, "0." + LONG, "1e1001", "1e2147483647", "1e2147483648", "1e" + "9" * 60, "1\n", "1_0", "٣", "1e٣"],
    ids=short,
)
def test_a_quantity_without_end_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)
    with pytest.raises(QuantityError):
        parse_quantity(10**5000)


def test_an_amount_in_a_list_of_resources_is_rounded_up_to_a_thousandth() -> None:
    pod = {"spec": {"containers": [{"resources": {"limits": {"cpu": "1n", "memory": "1e-5", "x/y": "0.1"}}}]}}
    assert [canonical_in_list(each) for each in pod["spec"]["containers"][0]["resources"]["limits"].values()] == [
        "1m", "1e-3", "100m",
    ]  # fmt: skip


def test_a_ratio_is_printed_whatever_its_size() -> None:
    assert six_decimals(Fraction(10**2000, 3)).endswith("3.333333")
    assert six_decimals(Fraction(-3, 2)) == "-1.500000"
    assert Quantity(Fraction(10**1900)).milli == 2**63 - 1


# -- where they are met --------------------------------------------------------------------------------------------


def test_an_integer_out_of_range_is_refused_with_its_field() -> None:
    for value in (2**31, 1.5, True):
        with pytest.raises(DecodeError, match=r"PodDisruptionBudgetSpec\.spec\.minAvailable of type int32"):
            check_fields(PODDISRUPTIONBUDGETS, {"spec": {"minAvailable": value}})


def test_a_percentage_of_any_length_is_validated() -> None:
    budget = {"metadata": {"name": "b", "namespace": "n"}, "spec": {"minAvailable": f"{LONG}%"}}
    assert [each.detail for each in validate_create(PODDISRUPTIONBUDGETS, budget)] == ["must not be greater than 100%"]
    rolling = {"maxSurge": f"{LONG}%", "maxUnavailable": "0" * 5000 + "%"}
    deployment = {"spec": {"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}
    assert validate_create(DEPLOYMENTS, deployment)
    assert (max_surge(deployment), max_unavailable(deployment)) == (2**31 - 1, 0)


@pytest.mark.parametrize("text", [LONG, "-" + LONG, *NO_NUMBERS], ids=short)
def test_an_annotation_that_is_no_number_counts_as_none(text: str) -> None:
    def pod(key: str) -> dict[str, Any]:
        return {"metadata": {"name": f"web-{text}", "annotations": {key: text}}}

    assert completion_index(pod("batch.kubernetes.io/job-completion-index")) is None
    assert all_index_failures(pod("batch.kubernetes.io/job-index-failure-count")) == 0
    assert all_index_failures(pod("batch.kubernetes.io/job-index-ignored-failure-count")) == 0
    assert revision_of(pod("deployment.kubernetes.io/revision")) == 0
    assert deletion_cost(pod("controller.kubernetes.io/pod-deletion-cost")) == 0
    if "-1" not in text:
        assert parent_and_ordinal(pod(""))[1] == -1
    assert Indexes.parse(f"{text},1,{text}-3,2-{text}", 5).intervals == ((1, 1),)
    term = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": [text]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert not matches_node({"affinity": affinity}, {"metadata": {"name": "n", "labels": {"a": "5"}}})


@pytest.mark.parametrize("text", [LONG, *NO_NUMBERS], ids=short)
def test_a_template_generation_that_is_none_is_refused(text: str) -> None:
    key = "deprecated.daemonset.template.generation"
    made = {"metadata": {"name": "d", "annotations": {key: text}}, "spec": {"template": {}}}
    strategy = DaemonSetStrategy(DAEMONSETS)
    with pytest.raises(StatusError, match="DaemonSet in version"):
        strategy.prepare_for_create(made)
    old = {"metadata": {"name": "d", "annotations": {key: str(2**63 - 1)}}, "spec": {"template": {}}}
    new = {"metadata": {"name": "d"}, "spec": {"template": {"spec": {}}}}
    strategy.prepare_for_update(new, old, "")
    assert new["metadata"]["annotations"] == {key: str(2**63 - 1)}  # type: ignore[index]


def test_numbers_of_requests_are_read_as_by_go() -> None:
    for text in (LONG, "1_0", "٣", ""):
        with pytest.raises(StatusError, match=r"strconv\.ParseInt"):
            parse_delete_options(None, {"gracePeriodSeconds": text}, ())
    for value in (2**63, 1.0, 1e300):
        with pytest.raises(StatusError, match="of type int64"):
            parse_delete_options({"gracePeriodSeconds": value}, {}, ())
    with pytest.raises(StatusError, match="value out of range"):
        parse_resource_version(LONG, for_list=True)
    with pytest.raises(StatusError, match="must be an integer"):
        parse_label_selector(f"a>{'9' * 63}")
