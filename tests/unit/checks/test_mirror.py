"""A folder of unit tests whose subject is elsewhere is found."""

from checks.mirror import mirror


def test_a_folder_of_tests_without_a_package_of_its_name_is_found(find) -> None:
    files = {
        "a/b/__init__.py": "",
        "a/c.py": "",
        "/tools/d/__init__.py": "",
        "/tools/e.py": "",
        "/tests/unit/test_root.py": "",
        "/tests/unit/a/b/test_it.py": "",
        "/tests/unit/a/c/test_module.py": "",
        "/tests/unit/b/test_moved.py": "",
        "/tests/unit/b/test_moved_too.py": "",
        "/tests/unit/a/gone/data/test_it.py": "",
        "/tests/unit/d/test_tool.py": "",
        "/tests/unit/e/test_program.py": "",
    }
    assert find(mirror, files) == ["tests/unit/a/gone/data/test_it.py:1", "tests/unit/b/test_moved.py:1"]


def test_folders_of_data_are_none_of_tests(find) -> None:
    assert find(mirror, {"a/__init__.py": "", "/tests/unit/a/golden/conftest.py": ""}) == []
