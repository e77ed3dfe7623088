"""Rules about pure modules find what they are for."""

from checks.pure import plain_objects, pure

PURE = '"""Doc."""\n\n# check: pure\n\n'


def test_what_a_rule_must_not_have_is_found(find) -> None:
    code = "from lastcall.world.clock import now\nasync def f():\n    import time\n    await g()\n"
    files = {"a/decide.py": code, "a/table.py": PURE + code, "a/other.py": code, "world/clock.py": ""}
    assert find(pure, {**files}) == [
        *("a/decide.py:1", "a/decide.py:2", "a/decide.py:3", "a/decide.py:4"),
        *("a/table.py:5", "a/table.py:6", "a/table.py:7", "a/table.py:8"),
    ]


def test_a_rule_uses_pure_modules_and_the_names_that_are_given(find) -> None:
    files = {
        "decide.py": "from lastcall.kube.api import meta\n",
        "a/decide.py": "import os.path\nfrom random import Random\nfrom lastcall.world import delays\n",
        "b/decide.py": "from lastcall.world.clock import rfc3339, now\nfrom lastcall.world.delays import Delay\n",
        "world/delays.py": PURE,
        "world/clock.py": '"""Doc."""\n\n# check: pure names rfc3339, later because they write a time\n',
    }
    assert find(pure, files) == ["b/decide.py:1", "world/clock.py:3"]


def test_a_marker_on_what_is_pure_by_its_name_is_found(find) -> None:
    assert find(pure, {"a/decide.py": PURE}) == ["a/decide.py:3"]


def test_a_rule_of_a_controller_that_does_not_say_its_kind_is_found(find) -> None:
    code = "def f(pod: Object) -> None: ...\n"
    marker = PURE[:-1] + "# check: plain objects because owners are of any kind\n\n"
    files = {
        "kube/controllers/job/decide.py": code,
        "kube/controllers/job/controller.py": code,
        "kube/controllers/quota/status.py": marker + code,
        "kube/controllers/quota/other.py": marker,
        "node/decide.py": code,
    }
    assert find(plain_objects, files) == ["kube/controllers/job/decide.py:1", "kube/controllers/quota/other.py:4"]
