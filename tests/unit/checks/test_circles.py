"""Circles of imports are found, however they are closed."""

import pytest
from checks.circles import import_circles

LATE = "def g():\n    from lastcall.p.a import f\n"
TYPE = "if TYPE_CHECKING:\n    from lastcall.p.a import f\n"


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
