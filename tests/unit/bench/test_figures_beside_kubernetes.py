"""Measurements beside a real Kubernetes write their tables into the pages of docs/."""

from pathlib import Path

import pytest
from bench import beside, containerd
from bench.real_cluster import END, begin, page
from bench.turns import rows


@pytest.mark.parametrize(("name", "of"), [("containerd", containerd.PAGE), ("beside", beside.PAGE)])
def test_the_figures_replace_those_of_before_and_nothing_else(name: str, of: Path) -> None:
    text = of.read_text()
    assert text.count(begin(name)) == text.count(END) == 1
    once = page(text, name, "| a |")
    assert page(once, name, "| b |") == once.replace("| a |", "| b |")
    assert once.partition(begin(name))[0] == text.partition(begin(name))[0]
    assert once.partition(END)[2] == text.partition(END)[2]


def test_a_page_without_a_place_for_the_figures_is_an_error() -> None:
    with pytest.raises(ValueError, match="the page has no line '<!-- figures: python -m bench beside -->'"):
        page("# Nothing\n", "beside", "| a |")


def test_how_many_times_as_fast_is_the_median_of_the_ratios_with_its_interval() -> None:
    head, _, row = beside.rows({"create → Running, ms": [(10.0, 200.0)] * 15})
    assert head == "| figure | n | lastcall | Kubernetes 1.36.2 | times as fast | 95 % |"
    assert row == "| create → Running, ms | 15 | 10 | 200 | 20.0 | 20.0-20.0 |"


def test_a_table_has_the_medians_and_the_interval_of_their_ratio() -> None:
    head, _, row = rows({"create → Running, ms": [(100.0, 200.0)] * 15}, "lastcall", "kubelet")
    assert head == "| figure | n | lastcall | kubelet | ratio | 95 % |"
    assert row == "| create → Running, ms | 15 | 100 | 200 | 0.500 | 0.500-0.500 |"
