"""What a scrape gets, read back by the library's own parsers."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as classic
from story_samples import samples

from lastcall.endings.story import PreStop
from lastcall.trace.exporting.health import Health
from lastcall.trace.exporting.metrics import Metrics
from lastcall.world.world import World

ACCEPT = "application/openmetrics-text; version=1.0.0"


def scraped(metrics, accept=ACCEPT):
    body, content_type = metrics.page(accept)
    parse = openmetrics if content_type.startswith("application/openmetrics-text") else classic
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample
            for family in parse(body.decode()) for sample in family.samples}  # fmt: skip


def value(found, name, **labels):
    return found[(name, tuple(sorted(labels.items())))].value


def test_ends_are_counted_by_workload_outcome_and_reason(ending_of, container):
    metrics = Metrics(World(), Health)
    for _ in range(3):
        metrics.ended(ending_of(container(), owner=("ReplicaSet", "web-7d9f8b6c5d")))
    where = {"namespace": "shop", "workload": "deployment/web"}
    assert value(scraped(metrics), "lastcall_pod_ends_total", **where, outcome="graceful", reason="deleted") == 3
    assert value(scraped(metrics), "lastcall_container_drain_seconds_count", **where) == 3
    assert value(scraped(metrics), "lastcall_container_drain_seconds_bucket", **where, le="2.5") == 0
    assert value(scraped(metrics), "lastcall_container_drain_seconds_bucket", **where, le="5.0") == 3


def test_an_exemplar_leads_from_a_bucket_to_the_pod(ending_of, container):
    metrics = Metrics(World(), Health)
    metrics.ended(ending_of(container(hook=PreStop("exec", "succeeded", 1.5))))
    where = (("le", "2.5"), ("namespace", "shop"), ("workload", "pod"))
    exemplar = scraped(metrics)[("lastcall_prestop_hook_seconds_bucket", where)].exemplar
    assert exemplar.value == 1.5
    assert exemplar.labels == {
        "trace_id": "11111111222243338444555555555555",
        "pod": "web-7d9f8b6c5d-x2x4q",
        "container": "app",
    }


def test_the_older_text_format_is_written_for_who_asks_for_no_other(ending_of, container):
    metrics = Metrics(World(), Health)
    metrics.ended(ending_of(container()))
    assert metrics.page("")[1].startswith("text/plain")
    found = scraped(metrics, "")
    assert (
        value(found, "lastcall_pod_ends_total", namespace="shop", workload="pod", outcome="graceful", reason="deleted")
        == 1
    )


def test_no_field_of_a_hostile_pod_breaks_the_page():
    metrics = Metrics(World(), Health)
    for endings in samples().values():
        for ending in endings:
            metrics.ended(ending)
    for accept in (ACCEPT, ""):
        found = scraped(metrics, accept)
        total = sum(sample.value for (name, _), sample in found.items() if name == "lastcall_pod_ends_total")
        assert total == sum(len(endings) for endings in samples().values())


def test_thousands_of_workloads_do_not_make_more_series_than_the_bound_allows(ending_of, container):
    metrics = Metrics(World(), Health, most_workloads=20)
    for number in range(500):
        metrics.ended(ending_of(container(), owner=("StatefulSet", f"db{number}"), used=(1, 0, 3)))
    before = len(scraped(metrics))
    for number in range(500, 3000):
        metrics.ended(ending_of(container(), owner=("StatefulSet", f"db{number}"), used=(1, 0, 3)))
    assert len(scraped(metrics)) == before < 20 * 60
    assert value(scraped(metrics), "lastcall_ends_without_place_total") == 2980


def test_who_loses_its_place_loses_its_series(ending_of, container):
    metrics = Metrics(World(), Health, most_workloads=1)
    metrics._places._idle_seconds = 0.0
    metrics.ended(ending_of(container(), owner=("StatefulSet", "old"), used=(1, 0, 3)))
    metrics.ended(ending_of(container(), owner=("StatefulSet", "new"), used=(1, 0, 3)))
    names = {dict(labels).get("workload") for _, labels in scraped(metrics)}
    assert names == {None, "statefulset/new"}


def test_the_watching_tells_of_itself():
    health = Health(
        watches={"pods": True, "events": False},
        reconnects={"pods": 3},
        gaps={"pods": 1},
        forbidden=frozenset({"events"}),
        pods=7,
        ending=2,
        waiting=5,
        leading=True,
    )
    metrics = Metrics(World(), lambda: health)
    metrics.deliveries("otlp", lambda: {"sent": 8, "failed": 1, "dropped": 2, "waiting": 3})
    found = scraped(metrics)
    assert value(found, "lastcall_watch_up", resource="pods") == 1
    assert value(found, "lastcall_watch_up", resource="events") == 0
    assert value(found, "lastcall_watch_forbidden", resource="events") == 1
    assert value(found, "lastcall_watch_reconnects_total", resource="pods") == 3
    assert value(found, "lastcall_watch_gaps_total", resource="pods") == 1
    assert value(found, "lastcall_stories_waiting") == 5
    assert value(found, "lastcall_exports_total", way="otlp", result="dropped") == 2
    assert value(found, "lastcall_exports_waiting", way="otlp") == 3
    assert health.ready, "what may not be read is not waited for"


@pytest.mark.parametrize(
    ("health", "ready"),
    [
        (Health(), False),
        (Health(watches={"pods": False}), False),
        (Health(watches={"pods": True}), True),
        (Health(leading=False), True),
    ],
)
def test_it_is_ready_when_everything_is_watched_or_another_one_does_it(health, ready):
    assert health.ready is ready
