"""Rules about the API server find what they are for."""

import pytest
from checks.apiserver import admission_reads, asks_for_kinds

KINDS = (
    'PODS = Resource("", "v1", "pods", "Pod", True)\nNODES = Resource("", "v1", "nodes", "Node", False)\n'
    'JOBS = Resource(\n    "batch", "v1", "jobs", "Job", True\n)\nTABLE = {}\n'
)


def test_a_read_past_the_reader_is_found(find) -> None:
    code = (
        "from lastcall.kube.store.memory import Store\nif TYPE_CHECKING:\n"
        "    from lastcall.kube.apiserver.registry import x\n"
        "def f(self):\n    return self.kinds\ndef charge(self):\n    return self.kinds\n"
        "def step(self, a: Attributes):\n    a.reader.get(self.reader)\ndef other(self):\n    return self.reader\n"
    )
    files = {"kube/apiserver/admission/a.py": code, "kube/apiserver/http.py": code}
    assert find(admission_reads, files) == [f"kube/apiserver/admission/a.py:{line}" for line in (1, 5, 9)]


@pytest.mark.parametrize(
    "text",
    [
        "resource is PODS",
        "resource != kinds.JOBS",
        "resource in (PODS, NODES)",
        "resource.plural == 'pods'",
        "kind == 'Pod'",
    ],
)
def test_a_question_for_a_kind_is_seen(find, text: str) -> None:
    code = f"if {text} and x:\n    pass\n"
    marker = '"""Doc."""\n\n# check: asks for kinds because it is a test\n\n'
    files = {
        "kube/api/resources.py": KINDS,
        "kube/apiserver/a.py": code,
        "kube/apiserver/idle.py": marker,
        "kube/apiserver/marked.py": marker + code,
        "kube/apiserver/strategies/pod.py": code,
        "node/a.py": code,
    }
    assert find(asks_for_kinds, files) == ["kube/apiserver/a.py:1", "kube/apiserver/idle.py:3"]


def test_other_comparisons_are_left_alone(find) -> None:
    code = "resource in REVIEWS or TABLE.get(resource) is None or kind == 'struct' or owner == 'Pod'\n"
    assert find(asks_for_kinds, {"kube/api/resources.py": KINDS, "kube/apiserver/a.py": code}) == []
