"""A name that is only defined is found."""

import pytest
from checks.dead_names import dead_names


def test_a_name_that_is_only_defined_is_found(find) -> None:
    code = "USED = 1\nDEAD = USED\ndef called(): ...\ndef dead(): ...\nclass Dead: ...\n@hook\ndef kept(): ...\n"
    files = {"a.py": code, "b.py": "from lastcall.a import called\n", "c.py": "from lastcall.other import dead\n"}
    assert find(dead_names, files) == ["a.py:2", "a.py:4", "a.py:5"]


@pytest.mark.parametrize("use", ["from lastcall.a import dead", "x.dead", "'lastcall.a.dead'", "print('dead')"])
@pytest.mark.parametrize("folder", ["tests", "tools", "bench", "examples"])
def test_a_use_elsewhere_counts(find, folder: str, use: str) -> None:
    assert find(dead_names, {"a.py": "def dead(): ...\n", f"/{folder}/b.py": use}) == []


def test_a_name_of_a_face_is_used_if_somebody_imports_it_from_there(find) -> None:
    stub = "from .a import dead as dead\nfrom .a import used as used\n"
    files = {"p/a.py": "def used(): ...\ndef dead(): ...\n", "b.py": "from lastcall.p import used\n"}
    files["/src/lastcall/p/__init__.pyi"] = stub
    assert find(dead_names, files) == ["p/__init__.pyi:1", "p/a.py:2"]


def test_helpers_of_tests_and_tools_are_looked_at_and_tests_are_not(find) -> None:
    files = {"/tests/support/a.py": "A = 1\n", "/tools/b.py": "B = 1\n", "/tests/unit/test_c.py": "C = 1\n"}
    assert find(dead_names, files) == ["/tests/support/a.py:1".lstrip("/"), "tools/b.py:1"]
