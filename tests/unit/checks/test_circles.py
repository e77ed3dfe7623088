"""Circles of imports are found, however they are closed."""

import pytest
from checks import circles
from checks.circles import import_circles

LATE = "def g():\n    from lastcall.p.a import f\n"
TYPE = "if TYPE_CHECKING:\n    from lastcall.p.a import f\n"


@pytest.fixture(autouse=True)
def no_open_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circles, "OPEN", {})


@pytest.mark.parametrize("closing", ["from lastcall.p.a import f\n", LATE, TYPE])
def test_modules_that_lead_to_each_other_are_found_however_they_import(find, closing: str) -> None:
    files = {"p/a.py": "import os\nfrom lastcall.q.b import g\n", "q/b.py": "from lastcall import c\n", "c.py": closing}
    assert find(import_circles, files) == ["c.py:" + str(closing.count("\n"))]


def test_modules_on_the_way_to_a_circle_and_from_it_are_none_of_it(find) -> None:
    files = {
        "x.py": "from lastcall.a import f\n",
        "a.py": "from lastcall.y import f\nfrom lastcall.z import f\n",
        "y.py": "from lastcall.z import f\n",
        "z.py": "import os\n",
    }
    assert find(import_circles, files) == []


def test_one_that_is_open_for_a_reason_is_none_and_has_to_go_with_the_circle(
    find, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circles, "OPEN", {frozenset(("lastcall.a", "lastcall.b")): "a reason"})
    assert find(import_circles, {"a.py": "from lastcall.b import f\n", "b.py": "from lastcall.a import f\n"}) == []
    assert find(import_circles, {"b.py": ""}) == ["tools/checks/circles.py:1"]
