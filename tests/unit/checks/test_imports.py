"""Rules about imports find what they are for."""

from checks.imports import (
    aiohttp,
    aiohttp_loading,
    faces,
    names_of_wings,
    package_files,
    standard_library,
    types,
)

MARKED = '"""Doc."""\n\n# check: standard library\n\n'


def test_a_package_file_that_imports_is_found(find) -> None:
    lazy = "if TYPE_CHECKING:\n    from lastcall.a import x\ndef f():\n    import json\n"
    files = {"__init__.py": lazy, "a/__init__.py": "from __future__ import annotations\n", "b/__init__.py": lazy}
    assert find(package_files, files) == ["b/__init__.py:2", "b/__init__.py:4"]
    assert find(package_files, {"__init__.py": "import json\n"})[0] == "__init__.py:1"


def test_an_import_from_inside_another_wing_is_found_and_one_from_its_face_is_not(find) -> None:
    face = "import lazy_loader\n__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n"
    inside, shown = "from lastcall.kube.api.meta import name_of\n", "from lastcall.kube.api import name_of\n"
    marked = '"""Doc."""\n\n# check: reaches inside because it must\n\n'
    files = {
        "kube/api/__init__.py": face, "kube/api/meta.py": "def name_of(): ...\n", "kube/store.py": inside,
        "records/a.py": "", "cli/a.py": inside, "cli/b.py": shown + "from lastcall.records.a import x\n",
        "cli/c.py": marked + inside, "cli/d.py": marked + shown,
    }  # fmt: skip
    assert find(faces, files) == ["cli/a.py:1", "cli/d.py:3"]


def test_the_standard_library_is_enough_for_a_marked_file_and_for_a_marked_folder(find) -> None:
    code = (
        "import os\nimport aiohttp\nfrom lastcall.plain import x\nfrom lastcall.shim.loop import y\n"
        "if TYPE_CHECKING:\n    from lastcall.plain import X\ndef f():\n    import yaml\n"
    )
    files = {
        "shim/__init__.py": MARKED,
        "shim/loop.py": code,
        "shim/deep/__init__.py": "",
        "shim/deep/a.py": "from lastcall import plain\n",
        "files.py": MARKED + code,
        "plain.py": code,
    }
    wanted = ["files.py:12", "files.py:6", "files.py:7", "shim/deep/a.py:1", "shim/loop.py:2", "shim/loop.py:3"]
    assert sorted(find(standard_library, files)) == sorted([*wanted, "shim/loop.py:8"])


def test_a_type_of_objects_that_is_loaded_is_found(find) -> None:
    code = "from lastcall.kube.api.types.pod import Pod\n"
    files = {
        "a.py": code,
        "b.py": f"if TYPE_CHECKING:\n    {code}",
        "c.py": f"def f():\n    {code}",
        "kube/api/types/pod.py": "",
        "kube/api/types/job.py": code,
    }
    assert find(types, files) == ["a.py:1", "c.py:2"]


def test_a_private_part_of_aiohttp_is_found(find) -> None:
    code = "import aiohttp\nfrom aiohttp.client_proto import ResponseHandler\nfrom aiohttp import web\naiohttp.web._x\n"
    assert find(aiohttp, {"a.py": code, "world/aiohttp_inside/b.py": code}) == ["a.py:2", "a.py:4"]


def test_a_module_that_loads_aiohttp_by_its_own_name_is_found(find) -> None:
    files = {
        "a.py": "import aiohttp\n",
        "b.py": "from aiohttp import web, ClientSession\n",
        "c.py": "from aiohttp import web, WSMsgType\ndef f():\n    import aiohttp\n",
        "world/aiohttp_inside/b.py": "import aiohttp\n",
    }
    assert find(aiohttp_loading, files) == ["a.py:1", "b.py:1"]


def test_a_module_of_the_product_that_kube_names_in_a_string_is_found(find) -> None:
    files = {
        "cli/main.py": "",
        "records/a.py": 'MAIN = "lastcall.cli.main"\n',
        "kube/a.py": 'run("-m", "lastcall.cli.main")\nrun("lastcall.kube.b", "lastcall.c", "lastcall.records.a")\n',
        "kube/b.py": '"""lastcall.cli.main starts it."""\n',
    }
    assert find(names_of_wings, files) == ["kube/a.py:1"]
