"""Sentences that components write into records are recognized, and told in Japanese."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from japanese import missing

from lastcall.records.language import translate
from lastcall.records.recalled import recalled
from lastcall.records.said import Said
from lastcall.trace.rights import MISSED, MissingRight

SOURCE = Path(__file__).resolve().parents[3] / "src" / "lastcall"
WRITERS = (
    "kube/apiserver/records.py", "kube/controllers/cronjob/controller.py", "kube/controllers/daemonset/decide.py",
    "kube/controllers/garbagecollector/controller.py", "kube/controllers/garbagecollector/pods/controller.py",
    "kube/controllers/job/ttl_after_finished.py", "kube/controllers/namespace/controller.py",
    "kube/api/taints.py", "kube/controllers/replicaset/controller.py",
    "kube/controllers/statefulset/decide.py", "kube/node/admission/manager.py", "kube/node/kubelet.py",
    "kube/node/shutdown/manager.py", "kube/node/stopping/kill_container.py", "kube/node/workers/manager.py",
    "kube/node/workers/syncer.py", "kube/scheduler/victims.py",
)  # fmt: skip
"""Modules that write a sentence into a record: as `why`."""

IN_PIECES = {
    "Job w1 of CronJob w1 w1": "its callers say why",
    "still runs when the next is due, and concurrencyPolicy is Replace": "of the sentence before",
    "evicted from w1 by its taint w1, ": "whether it is tolerated comes next",
    "w1 w1 goes from w1 to w1 Pods, and ": "which one goes comes next",
}
"""Beginnings and ends of sentences, and why they are no whole ones."""


def _sentences(path: str) -> Iterator[str]:
    """What is said as `why` in a module, with `w1` for each of its facts."""
    for node in ast.walk(ast.parse((SOURCE / path).read_text("utf-8"))):
        value: ast.expr | None = None
        match node:
            case ast.Assign(targets=[ast.Name(id="why")]) | ast.keyword(arg="why"):
                value = node.value
            case ast.Dict(keys=keys, values=values):
                named = [key.value if isinstance(key, ast.Constant) else None for key in keys]
                value = values[named.index("why")] if "why" in named else None
        for each in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
            if isinstance(each, ast.JoinedStr | ast.Constant) and (said := _text(each)):
                yield said


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(v.value) if isinstance(v, ast.Constant) else "w1" for v in node.values)


@pytest.mark.parametrize("path", WRITERS)
def test_a_sentence_that_a_component_writes_is_recognized(path: str) -> None:
    found = list(_sentences(path))
    assert found
    assert [each for each in found if not isinstance(recalled(each), Said) and each not in IN_PIECES] == []


@pytest.mark.parametrize(
    ("english", "japanese"),
    [
        (
            "ReplicaSet web-1 goes from 4 to 2 Pods, and this one is number 1 to go: not Ready",
            "ReplicaSet web-1 の Pod を 4 から 2 へ、これは 1 番目に消える: Ready でない",
        ),
        (
            "its owner is gone: ReplicaSet a, which Deployment b had owned",
            "所有者が消えた: ReplicaSet a (所有者は Deployment b だった)",
        ),
        (
            "evicted by kubectl (user kubernetes-admin): PodDisruptionBudget web allowed it",
            "kubectl (user kubernetes-admin) が退避: PodDisruptionBudget web が許可",
        ),
        (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container app was using "
            "50Mi, request is 0, has larger consumption of memory.",
            "ノードの資源が不足: memory。閾値 100Mi、残り 90Mi。コンテナー app は memory を 50Mi 使用、要求は 0.",
        ),
        (
            "Only the node sees open connections and ports, processes that were left and when a node's rules for "
            "Services changed: not known.",
            "ノードだけに見えるもの (開いている接続とポート、残ったプロセス、"
            "ノードの Service のルールが変わった時刻) は不明です。",
        ),
    ],
)  # fmt: skip
def test_a_sentence_is_told_whole_in_japanese(english: str, japanese: str) -> None:
    assert recalled(english) == english and missing(recalled(english)) == []
    assert translate(recalled(english), "ja") == japanese


@pytest.mark.parametrize("resource", [*MISSED, "widgets"])
def test_what_may_not_be_read_is_told_in_japanese(resource: str) -> None:
    sentence = MissingRight(resource, "").sentence
    assert isinstance(recalled(sentence), Said), sentence
    assert "許可されていません" in translate(recalled(sentence), "ja")


def test_what_is_no_sentence_of_lastcall_stays_as_it_is() -> None:
    for text in ("Back-off restarting failed container", "not Ready", "", "x, y"):
        assert not isinstance(recalled(text), Said)
    assert recalled(None) == "None" and recalled(7) == "7"
