"""Tests take turns: with LASTCALL_SPLIT_TESTS (tools/test sets it) a file of the real kernel runs on one Python only.

What depends on the version of Python (unit, scenarios but the longest) runs on both, and so do a few of the kernel's.
Without the variable all of it runs.
"""

import os
import sys
from pathlib import Path

import pytest

ONLY_ON = {
    "browser/test_story_in_a_browser.py": "3.13",
    "clients/test_example_apps.py": "3.13",
    "clients/test_images_from_registries.py": "3.11",
    "clients/test_kubectl_exec.py": "3.13",
    "clients/test_kubectl_matrix.py": "3.11",
    "clients/test_run_bad_input.py": "3.13",
    "clients/test_pod_egress.py": "3.11",
    "clients/test_published_ports.py": "3.13",
    "clients/test_rollout.py": "3.11",
    "clients/test_several_nodes.py": "3.13",
    "clients/test_up_and_down.py": "3.11",
    "clients/test_up_with_state.py": "3.13",
    "clients/test_what_pods_ask_for.py": "3.13",
    "crash/test_interrupts.py": "3.11",
    "crash/test_kill_matrix.py": "3.13",
    "crash/test_kill_matrix_staying.py": "3.11",
    "crash/test_node_killed_while_pulling.py": "3.13",
    "crash/test_random_kills.py": "3.13",
    "node/test_cni_in_a_cluster.py": "3.11",
    "node/test_images_that_drop_privileges.py": "3.11",
    "node/test_service_in_a_cluster.py": "3.13",
    "node/test_service_packets.py": "3.11",
    "node/test_log_rotation_on_the_kernel.py": "3.13",
    "scenarios/test_whole_manager_killed.py": "3.11",
    "scenarios/test_whole_node_loss.py": "3.13",
    "scenarios/test_whole_rollout.py": "3.13",
    "node/test_many_pods_at_once.py": "3.11",
    "node/test_what_an_end_leaves.py": "3.13",
}
"""File below tests/ → the Python that runs it: the long ones, shared out by hand."""

ON_BOTH = (
    "clients/test_kubectl_against_run.py",
    "clients/test_recorded_lifecycles.py",  # another half on each
    "node/test_containers_lifecycle.py",
    "node/test_demo_pods_end.py",
)
SHARED_OUT = ("clients", "crash", "node")
"""Directories whose other files run on the one or the other in turn."""

HERE = Path(__file__).parent
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def _turns() -> dict[str, str]:
    """File below tests/ → the Python that runs it; no entry for those that run on both."""
    names = sorted(str(path.relative_to(HERE)) for each in SHARED_OUT for path in (HERE / each).glob("test_*.py"))
    rest = [name for name in names if name not in ONLY_ON and name not in ON_BOTH]
    return {name: ("3.11", "3.13")[index % 2] for index, name in enumerate(rest)} | ONLY_ON


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [name for name in (*ONLY_ON, *ON_BOTH) if not (HERE / name).exists()]
    assert not missing, f"this table names files that are not there: {missing}"
    if not os.environ.get("LASTCALL_SPLIT_TESTS"):
        return
    turns = _turns()
    others = [item for item in items if turns.get(str(item.path.relative_to(HERE)), THIS) != THIS]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]
