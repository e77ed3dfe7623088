"""Rules about packages find what they are for."""

from checks.packages import circles, docstrings, groups, stutters


def test_a_package_without_a_docstring_is_found(find) -> None:
    assert find(docstrings, {"a/__init__.py": "", "b/__init__.py": '"""Holds b."""\n', "b/c.py": ""}) == [
        "a/__init__.py:1"
    ]


def test_a_name_that_repeats_its_folder_is_found(find) -> None:
    marker = '"""Doc."""\n\n# check: repeats its folder because it is the status of a Node\n'
    files = {"node/node_a.py": "", "node/a.py": "", "lastcall_a.py": "", "node/node_b.py": marker, "node/c.py": marker}
    assert find(stutters, files) == ["node/c.py:3", "node/node_a.py:1"]


def test_entries_of_a_folder_that_import_each_other_are_found(find) -> None:
    files = {
        "p/a/x.py": "try:\n    from lastcall.p.b.x import f\nfinally:\n    pass\n",
        "p/b/x.py": "",
        "p/b/y.py": "from lastcall.p.a import y\n",
        "p/a/y.py": "",
        "p/c.py": "from lastcall.p.a.x import f\n",
    }
    assert find(circles, files) == ["p/a/x.py:2"]


def test_imports_in_functions_and_for_type_checkers_close_no_circle(find) -> None:
    lazy = "if TYPE_CHECKING:\n    from lastcall.p.a import f\ndef g():\n    from lastcall.p.a import f\n"
    assert find(circles, {"p/a.py": "from lastcall.p.b import g\n", "p/b.py": lazy}) == []


def test_modules_above_and_below_each_other_close_no_circle(find) -> None:
    assert find(circles, {"p/a.py": "from lastcall.p.q.b import g\n", "p/q/b.py": "from lastcall import p\n"}) == []


def test_groups_are_those_of_which_each_leads_to_all() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set[str]()}
    assert groups(graph) == [frozenset("abc")]
