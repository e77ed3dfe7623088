"""What Pods were given of the node: over a kubelet's death, and in which order those that wait get more."""

from pathlib import Path

import pytest

from lastcall.kube.node.admission.allocation import (
    Waiting,
    allocation_of,
    in_order,
    increases_requests,
    with_allocation,
)
from lastcall.kube.node.admission.checkpoint import AllocationFiles


def pod(name="p", cpu="100m", memory="50Mi", limits=None, **spec):
    resources = {"requests": {"cpu": cpu, "memory": memory}, **({"limits": limits} if limits else {})}
    return {
        "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}"},
        "spec": {"containers": [{"name": "app", "image": "x", "resources": resources}], **spec},
    }


def test_a_pod_has_what_it_was_given_and_not_what_it_asks_for_since():
    asks = pod(cpu="200m")
    has = with_allocation(asks, allocation_of(pod()))
    assert has["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"
    assert asks["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    assert with_allocation(asks, None) is asks


def test_the_same_amount_in_other_words_is_no_resize():
    asks = pod(cpu="0.1", memory="51200Ki")
    assert with_allocation(asks, allocation_of(pod())) is asks


def test_resources_of_the_pod_itself_are_given_too():
    asks = pod(resources={"requests": {"cpu": "1"}})
    assert with_allocation(asks, allocation_of(pod()))["spec"].get("resources") is None


def test_the_next_kubelet_reads_what_was_given(tmp_path: Path):
    files = AllocationFiles(str(tmp_path / "allocations"))
    given = allocation_of(pod(resources={"requests": {"cpu": "1"}}))
    files.save("uid-1", given)
    assert AllocationFiles(str(tmp_path / "allocations")).load() == {"uid-1": given}
    files.remove("uid-1")
    files.remove("uid-1")
    assert files.load() == {}


@pytest.mark.parametrize("text", ["", "[]", '{"containers": 3}', '{"containers": {"a": {"limits": {"cpu": "much"}}}}'])
def test_a_checkpoint_that_cannot_be_read_is_removed(tmp_path: Path, text: str):
    (tmp_path / "uid-1.json").write_text(text)
    (tmp_path / "uid-2.json.tmp").write_text("{}")
    assert AllocationFiles(str(tmp_path)).load() == {}
    assert list(tmp_path.iterdir()) == []


def test_without_a_directory_nothing_is_kept():
    files = AllocationFiles("")
    files.save("uid-1", allocation_of(pod()))
    assert files.load() == {}


def test_who_takes_no_more_goes_first_then_priority_then_guaranteed_then_the_longest_wait():
    small = pod("small", cpu="50m")
    important = pod("important", cpu="200m", priority=10)
    guaranteed = pod("guaranteed", cpu="200m", limits={"cpu": "200m", "memory": "50Mi"})
    early, late, new = pod("early", cpu="200m"), pod("late", cpu="200m"), pod("new", cpu="200m")
    since = {"early": 1, "late": 2}
    waiting = [
        Waiting(each, with_allocation(each, allocation_of(pod())), since.get(each["metadata"]["name"]))
        for each in (new, late, early, guaranteed, important, small)
    ]
    names = [one.pod["metadata"]["name"] for one in in_order(waiting)]
    assert names == ["small", "important", "guaranteed", "early", "late", "new"]


def test_less_of_one_and_more_of_the_other_takes_more():
    assert increases_requests(pod(cpu="50m", memory="60Mi"), pod())
    assert not increases_requests(pod(cpu="50m"), pod())
