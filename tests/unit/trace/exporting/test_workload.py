"""Under which workload an end is counted, and how many workloads there may be."""

import pytest

from lastcall.endings.story import DecidedBy
from lastcall.trace.exporting.workload import OTHER, Places, Workload, workload_of


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (("ReplicaSet", "web-7d9f8b6c5d"), "deployment/web"),
        (("ReplicaSet", "by-hand"), "replicaset/by-hand"),  # vowels: no template hash
        (("StatefulSet", "db"), "statefulset/db"),
        (("DaemonSet", "agent"), "daemonset/agent"),
        (("Job", "report-29384756"), "cronjob/report"),
        (("Job", "migrate"), "job/migrate"),
        (None, "pod"),
    ],
)
def test_a_workload_has_kubectl_s_words_and_no_name_that_is_new_each_time(ending_of, owner, name):
    assert workload_of(ending_of(owner=owner)) == Workload("shop", name)


def test_a_story_without_the_record_of_creation_has_the_owner_that_decided(ending_of):
    by = DecidedBy("replicaset-controller", "scaledIn", "why", owner_kind="ReplicaSet", owner="web-7d9f8b6c5d")
    assert workload_of(ending_of(decided_by=by, entries=())).name == "deployment/web"


def test_who_comes_when_all_places_are_taken_is_counted_as_other():
    places = Places(limit=2, idle_seconds=100)
    assert [places.place(Workload("n", name), 0)[0].name for name in "aba"] == ["a", "b", "a"]
    assert places.place(Workload("n", "c"), 99) == (Workload(OTHER, OTHER), None)
    assert (len(places), places.refused) == (2, 1)


def test_a_place_that_nobody_used_for_long_goes_to_the_next_one():
    places = Places(limit=2, idle_seconds=100)
    for at, name in ((0, "a"), (1, "b"), (50, "a")):
        places.place(Workload("n", name), at)
    assert places.place(Workload("n", "c"), 120) == (Workload("n", "c"), Workload("n", "b"))
    assert places.place(Workload("n", "d"), 121) == (Workload(OTHER, OTHER), None)


def test_however_many_workloads_come_the_places_stay_as_many():
    places = Places(limit=10, idle_seconds=5)
    given = {places.place(Workload("n", f"w{number}"), number)[0].name for number in range(1000)}
    assert len(places) == 10
    assert len(given) <= 10 * (1000 // 5 + 1)
