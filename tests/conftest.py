"""Who runs what, and in which order.

Tests take turns: with LASTCALL_SPLIT_TESTS (tools/test sets it) a file of the real kernel runs on one Python only, and
so does a file of `PURE`: rules and tables, and whole lives in virtual time, which say the same on each. What depends on
the version of Python (the rest of unit) runs on both, and so do a few of the kernel's. Without the variable all of it
runs.

Tests run side by side (`pytest -n`): a file at a time, so that what it set up is set up once, the long ones first. The
tests of a file in `ALONE` depend on nothing of each other and are dealt out one by one.
"""

import os
import sys
from pathlib import Path

import pytest

ONLY_ON = {
    "browser/test_live_page.py": "3.11",
    "browser/test_page_in_japanese.py": "3.13",
    "browser/test_pages_of_commands.py": "3.11",
    "browser/test_rollout_in_a_browser.py": "3.11",
    "browser/test_rollouts_on_the_page.py": "3.13",
    "browser/test_site.py": "3.11",
    "browser/test_story_in_a_browser.py": "3.13",
    "browser/test_tour.py": "3.11",
    "clients/test_claims_on_the_kernel.py": "3.13",
    "clients/api/test_conformance_part.py": "3.11",
    "clients/shown/test_example_apps.py": "3.13",
    "clients/shown/test_monitoring.py": "3.13",
    "clients/test_images_from_registries.py": "3.11",
    "clients/kubectl/test_kubectl_exec.py": "3.13",
    "clients/kubectl/test_kubectl_limits_of_namespaces.py": "3.13",
    "clients/kubectl/test_kubectl_matrix.py": "3.11",
    "clients/test_run_bad_input.py": "3.13",
    "clients/test_pod_egress.py": "3.11",
    "clients/test_published_ports.py": "3.13",
    "clients/test_recorded_pulls_and_taints.py": "3.11",
    "clients/test_no_false_alarms.py": "3.13",
    "clients/rollout/test_rollout.py": "3.11",
    "clients/test_several_nodes.py": "3.13",
    "clients/test_up_and_down.py": "3.11",
    "clients/states/test_up_with_state.py": "3.13",
    "clients/test_what_pods_ask_for.py": "3.13",
    "crash/test_interrupts.py": "3.11",
    "crash/test_kill_matrix.py": "3.13",
    "crash/test_kill_matrix_staying.py": "3.11",
    "crash/test_node_killed_while_pulling.py": "3.13",
    "crash/test_random_kills.py": "3.13",
    "node/test_cni_in_a_cluster.py": "3.11",
    "node/images/test_images_that_drop_privileges.py": "3.11",
    "node/services/test_service_in_a_cluster.py": "3.13",
    "node/services/test_service_packets.py": "3.11",
    "node/test_log_rotation_on_the_kernel.py": "3.13",
    "scenarios/whole/test_whole_manager_killed.py": "3.11",
    "scenarios/whole/test_whole_node_loss.py": "3.13",
    "scenarios/whole/test_whole_rollout.py": "3.13",
    "node/test_many_pods_at_once.py": "3.11",
    "node/test_what_an_end_leaves.py": "3.13",
    "pains/test_pains.py": "3.11",
}
"""File below tests/ → the Python that runs it: the long ones, shared out by hand."""

ON_BOTH = (
    "clients/kubectl/test_kubectl_against_run.py",
    "clients/test_recorded_lifecycles.py",  # another half on each
    "node/containers/test_containers_lifecycle.py",
    "node/test_demo_pods_end.py",
    "scenarios/test_demos.py",
    "scenarios/test_determinism.py",
)
SHARED_OUT = ("browser", "clients", "crash", "engines", "node")
"""Directories whose other files run on the one or the other in turn."""
PURE = ("scenarios", "unit/api", "unit/apiserver", "unit/cel", "unit/controllers", "unit/lint", "unit/scheduler")
"""As these; on a Python that is neither of the two all of them run."""
PYTHONS = ("3.11", "3.13")

ALONE = (
    "crash/test_watchdog.py",
    "pains/test_pains.py",
    "scenarios/whole/test_whole_manager_killed.py",
    "scenarios/test_determinism.py",
    "scenarios/whole/test_whole_properties.py",
)
"""Long files whose tests have no fixture in common."""

LONG_FIRST = (
    "clients/api/test_conformance_part.py",
    "crash/test_watchdog.py",
    "browser/test_rollouts_on_the_page.py",
    "clients/test_recorded_lifecycles.py",
    "clients/test_recorded_pulls_and_taints.py",
    "clients/shown/test_example_apps.py",
    "clients/python/test_pytest_app.py",
    "clients/shown/test_ci_templates.py",
    "clients/test_no_false_alarms.py",
    "clients/kubectl/test_kubectl_matrix.py",
    "clients/kubectl/test_kubectl_exec.py",
    "clients/test_several_nodes.py",
    "crash/test_kill_matrix.py",
    "crash/test_kill_matrix_staying.py",
    "crash/test_random_kills.py",
    "crash/test_interrupts.py",
    "crash/test_node_killed_while_pulling.py",
    "clients/test_up_and_down.py",
    "clients/rollout/test_rollout.py",
    "clients/rollout/test_rollout_on_a_cluster.py",
    "browser/test_live_page.py",
    "browser/test_pages_of_commands.py",
    "browser/test_tour.py",
    "engines/test_etcd_faults.py",
    "clients/states/test_up_with_state.py",
    "clients/test_run_bad_input.py",
    "clients/kubectl/test_kubectl_workloads.py",
    "clients/kubectl/test_kubectl_against_run.py",
    "node/containers/test_containers_streams.py",
    "node/containers/test_containers_exec.py",
    "node/containers/test_containers_lifecycle.py",
    "scenarios/whole/test_whole_manager_killed.py",
    "scenarios/test_random_lives_step_by_step.py",
    "scenarios/whole/test_whole_drain.py",
    "scenarios/test_determinism.py",
    "scenarios/whole/test_whole_properties.py",
)
"""Which files begin, when several run at once: a long one that begins last runs alone."""

HERE = Path(__file__).parent
pytest.register_assert_rewrite(
    "scenario", *(path.stem for path in sorted((HERE / "support").glob("*.py")))
)  # they say why
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def _turns() -> dict[str, str]:
    """File below tests/ → the Python that runs it; no entry for those that run on both."""
    shared_out = (*SHARED_OUT, *PURE) if THIS in PYTHONS else SHARED_OUT
    names = sorted(str(path.relative_to(HERE)) for each in shared_out for path in (HERE / each).rglob("test_*.py"))
    rest = [name for name in names if name not in ONLY_ON and name not in ON_BOTH]
    return {name: PYTHONS[index % 2] for index, name in enumerate(rest)} | ONLY_ON


def _file(item: pytest.Item) -> str:
    return str(item.path.relative_to(HERE))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [name for name in (*ONLY_ON, *ON_BOTH, *ALONE, *LONG_FIRST) if not (HERE / name).exists()]
    assert not missing, f"these tables name files that are not there: {missing}"
    if hasattr(config, "workerinput"):  # one of several processes
        rank = {name: number for number, name in enumerate(LONG_FIRST)}
        items.sort(key=lambda item: rank.get(_file(item), len(rank)))
    if not os.environ.get("LASTCALL_SPLIT_TESTS"):
        return
    turns = _turns()
    others = [item for item in items if turns.get(_file(item), THIS) != THIS]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


class ToldAtOnce:
    """A line for each failure when it happens: a long run may never come to its summary.

    And to the file LASTCALL_FAILURES with what was asserted: tools/test prints it at the very end.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._file = os.environ.get("LASTCALL_FAILURES", "")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell(report, str(report.when))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(report, "collect")

    def _tell(self, report: pytest.TestReport | pytest.CollectReport, when: str) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = str(crash.message if crash else report.longrepr)
        self._config.get_terminal_writer().line(f"\nFAILED {report.nodeid} ({when}): {why.partition(chr(10))[0][:300]}")
        if self._file:
            with open(self._file, "a") as file:
                file.write(f"FAILED {report.nodeid} ({when}) on Python {THIS}\n{_shortened(why)}\n\n")


def _shortened(text: str) -> str:
    """Begin and end of what may be a whole log."""
    lines = [line[:400] for line in text.splitlines()]
    left_out = len(lines) - 80
    return "\n".join([*lines[:30], f"… {left_out} lines …", *lines[-50:]] if left_out > 0 else lines)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ToldAtOnce(config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Deals out files, but the tests of the files in `ALONE` one by one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if nodeid.split("::", 1)[0].endswith(ALONE) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # as sorted above, and not by the number of tests
    return Scheduling(config, log)
