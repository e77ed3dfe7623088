"""A state of a Pod's worker that is set elsewhere is found."""

import ast

import pytest
from checks.workers import worker_state, writers_of_state


@pytest.mark.parametrize(
    "text",
    [
        "replace(status, state=State.SYNC)",
        "dataclasses.replace(status, **changes)",
        "PodSyncStatus('u', 'n', state=State.SYNC)",
        "PodSyncStatus('u', 'n', State.SYNC)",
        "t.PodSyncStatus(*known)",
        "object.__setattr__(status, 'state', State.SYNC)",
        "status.state = State.SYNC",
    ],
)
def test_a_state_that_is_set_elsewhere_is_seen(text: str) -> None:
    assert list(writers_of_state(ast.parse(f"def f(status):\n    {text}\n"))) == [(2, "f")]


def test_the_rule_reports_writers_and_users_outside_of_the_package(find) -> None:
    move = "class PodSyncStatus: ...\ndef move(status):\n    return replace(status, state=1)\n"
    other = "from lastcall.kube.node.workers.transitions import PodSyncStatus\ndef f(status):\n    status.state = 1\n"
    files = {
        "kube/node/workers/transitions.py": move + "def other(status):\n    return replace(status, state=2)\n",
        "kube/node/workers/manager.py": other,
        "kube/node/kubelet.py": other,
    }
    assert find(worker_state, files) == [
        "kube/node/kubelet.py:1",
        "kube/node/workers/manager.py:3",
        "kube/node/workers/transitions.py:5",
    ]
