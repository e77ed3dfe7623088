"""The text of `/metrics`: as Go's client writes it."""

import json
import re
from pathlib import Path

import pytest

from lastcall.kube.api.metrics.statusz import Status, document, form, text
from lastcall.kube.api.metrics.text import exposition, number
from lastcall.world.counting import Histogram, Registry, exponential

KUBERNETES = json.loads((Path(__file__).parents[4] / "golden/metrics/kubernetes-1.36.2.json").read_text())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (1, "1"),
        (0.1, "0.1"),
        (999_999, "999999"),
        (1e6, "1e+06"),
        (1_007_616, "1.007616e+06"),
        (955_601_934_767, "9.55601934767e+11"),
        (0.00020505500000000005, "0.00020505500000000005"),
        (0.037159648999999996, "0.037159648999999996"),
        (1e-8, "1e-08"),
        (1795646707.172634, "1.795646707172634e+09"),
        (-2.5, "-2.5"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_those_of_go(value: float, expected: str) -> None:
    assert number(value) == expected


def test_a_histogram_counts_upwards_and_ends_with_all() -> None:
    histogram = Histogram((1, 2, 4))
    for value in (0.5, 1, 3, 9):
        histogram.observe(value)
    assert exposition([("scheduler_preemption_victims", [({}, histogram)])]).splitlines() == [
        "# HELP scheduler_preemption_victims [STABLE] Number of selected preemption victims",
        "# TYPE scheduler_preemption_victims histogram",
        'scheduler_preemption_victims_bucket{le="1"} 2',
        'scheduler_preemption_victims_bucket{le="2"} 2',
        'scheduler_preemption_victims_bucket{le="4"} 3',
        'scheduler_preemption_victims_bucket{le="+Inf"} 4',
        "scheduler_preemption_victims_sum 13.5",
        "scheduler_preemption_victims_count 4",
    ]


def test_families_of_one_name_are_told_together_in_the_order_of_their_labels() -> None:
    told = exposition(
        [
            ("workqueue_depth", [({"name": "job"}, 2)]),
            ("process_max_fds", [({}, 20000)]),
            ("workqueue_depth", [({"name": 'a"b\\c\nd'}, 1)]),
            ("workqueue_adds_total", []),
        ]
    )
    assert [line for line in told.splitlines() if not line.startswith("#")] == [
        "process_max_fds 20000",
        'workqueue_depth{name="a\\"b\\\\c\\nd"} 1',
        'workqueue_depth{name="job"} 2',
    ]
    assert told.endswith("\n")


def test_a_name_that_kubernetes_does_not_have_is_refused() -> None:
    with pytest.raises(KeyError):
        exposition([("lastcall_things", [({}, 1)])])


def test_bounds_are_those_that_kubernetes_writes() -> None:
    wanted = KUBERNETES["workqueue_work_duration_seconds"]["bounds"]
    assert [number(bound) for bound in exponential(1e-8, 10, 10)] == wanted[:-1]


def test_what_an_object_tells_goes_with_it() -> None:
    class Counting:
        def families(self) -> list[tuple[str, list[tuple[dict[str, str], float]]]]:
            return [("process_max_fds", [({}, 1)])]

    registry, one = Registry(), Counting()
    registry.add(one.families)
    assert len(list(registry.families())) == 1
    del one
    assert list(registry.families()) == []


STATUS = Status("kubelet", "1.36.2", 1_795_646_704, 1_795_646_704 + 90_000 + 3_725, ("/healthz", "/metrics"))


def test_statusz_says_when_a_component_began() -> None:
    assert text(STATUS, ":").splitlines() == [
        "",
        "kubelet statusz",
        "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and "
        "is for debugging purposes only.",
        "",
        "Started:  Wed Nov 25 22:45:04 UTC 2026",
        "Up:  26 hr 02 min 05 sec",
        "Go version:  ",
        "Binary version:  1.36.2",
        "Emulation version:  1.36",
        "Paths:  /healthz /metrics",
    ]
    told = json.loads(document(STATUS, "v1beta1"))
    assert (told["apiVersion"], told["uptimeSeconds"]) == ("config.k8s.io/v1beta1", 93_725)
    assert re.fullmatch(r"2026-11-25T22:45:04Z", told["startTime"])


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", ""),
        ("*/*", ""),
        ("application/json, */*", ""),
        ("text/plain", ""),
        ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", "v1beta1"),
        ("application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", "v1alpha1"),
        ("application/json;v=v2;g=config.k8s.io;as=Statusz", None),
        ("application/json", None),
        ("text/html", None),
    ],
)
def test_statusz_comes_in_the_forms_of_kubernetes(accept: str, expected: str | None) -> None:
    assert form(accept) == expected


def test_the_page_names_every_family_and_no_other() -> None:
    project = Path(__file__).parents[5]
    table = (project / "src/lastcall/kube/api/metrics/families.tsv").read_text().splitlines()
    rows = [line for line in (project / "docs/metrics.md").read_text().splitlines() if line.startswith("| ")][1:]
    named = {name for row in rows for name in re.findall(r"`([a-z]+_\w+)`", row)}
    assert named == {line.split("\t")[0] for line in table} == set(KUBERNETES)
