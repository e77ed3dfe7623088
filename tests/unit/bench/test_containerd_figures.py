"""`python -m bench containerd` writes its table into docs/engines.md."""

from bench.containerd import BEGIN, END, PAGE, page
from bench.turns import rows


def test_the_figures_replace_those_of_before_and_nothing_else() -> None:
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    once = page(text, "| a |")
    assert page(once, "| b |") == once.replace("| a |", "| b |")
    assert once.partition(BEGIN)[0] == text.partition(BEGIN)[0] and once.partition(END)[2] == text.partition(END)[2]


def test_a_table_has_the_medians_and_the_interval_of_their_ratio() -> None:
    head, _, row = rows({"create → Running, ms": [(100.0, 200.0)] * 15}, "lastcall", "kubelet")
    assert head == "| figure | n | lastcall | kubelet | ratio | 95 % |"
    assert row == "| create → Running, ms | 15 | 100 | 200 | 0.500 | 0.500-0.500 |"
