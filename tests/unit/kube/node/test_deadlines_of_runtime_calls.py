"""Every call to the runtime has a deadline, hands its answer on, and is counted (cri-client pkg/remote_runtime.go)."""

import asyncio
from typing import Any

import pytest

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.node.runtime_deadlines import RUNTIME_REQUEST_TIMEOUT, RuntimeWithDeadlines
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Runtime:
    """Answers each call after `seconds` with its name and arguments; the longest never does."""

    def __init__(self, world: World, seconds: float = 0.0, error: Exception | None = None) -> None:
        self._world, self._seconds, self._error = world, seconds, error
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            await self._world.clock.sleep(self._seconds)
            if self._error is not None:
                raise self._error
            return name, *arguments, *named.values()

        return call

    def get_container_events(self) -> str:
        return "events"

    async def close(self) -> None:
        self.closed = True


CALLS: list[tuple[str, tuple[Any, ...], str, float | None]] = [
    ("run_pod_sandbox", ("config", "handler"), "run_podsandbox", 240),
    ("stop_pod_sandbox", ("s",), "stop_podsandbox", 120),
    ("remove_pod_sandbox", ("s",), "remove_podsandbox", 120),
    ("pod_sandbox_status", ("s",), "podsandbox_status", 120),
    ("list_pod_sandbox", ("u",), "list_podsandbox", 120),
    ("create_container", ("s", "config", "sandbox"), "create_container", 120),
    ("start_container", ("c",), "start_container", 120),
    ("stop_container", ("c", 30), "stop_container", None),
    ("remove_container", ("c",), "remove_container", 120),
    ("update_pod_sandbox_resources", ("s", "r"), "update_podsandbox_resources", 120),
    ("update_container_resources", ("c", "r"), "update_container_resources", 120),
    ("reopen_container_log", ("c",), "reopen_container_log", 120),
    ("list_containers", ("u",), "list_containers", 120),
    ("container_status", ("c",), "container_status", 120),
    ("exec_sync", ("c", ("true",), 0), "exec_sync", None),
    ("exec_sync", ("c", ("true",), 7), "exec_sync", 127),
    ("status", (), "status", 120),
    ("container_stats", ("c",), "container_stats", 120),
]
WITHOUT_ANSWER = {
    "stop_pod_sandbox", "remove_pod_sandbox", "start_container", "stop_container", "remove_container",
    "update_pod_sandbox_resources", "update_container_resources", "reopen_container_log",
}  # fmt: skip


def called(method: str, arguments: tuple[Any, ...], seconds: float = 0.0, error: Exception | None = None) -> Any:
    """The answer of a call, or its error; the seconds that it took; and what was counted."""

    async def main(world: World) -> Any:
        runtime = RuntimeWithDeadlines(Runtime(world, seconds, error), world.clock)  # type: ignore[arg-type]
        began = world.clock.monotonic_ns()
        try:
            answer = await getattr(runtime, method)(*arguments)
        except Exception as failure:
            answer = failure
        counted = {name: {tuple(labels.values()): value for labels, value in rows} for name, rows in runtime.families()}
        return answer, (world.clock.monotonic_ns() - began) / 1e9, counted

    return run_virtual(main)


@pytest.mark.parametrize(("method", "arguments", "operation", "limit"), CALLS)
def test_an_answer_is_handed_on_and_counted(
    method: str, arguments: tuple[Any, ...], operation: str, limit: float | None
) -> None:
    answer, _, counted = called(method, arguments, 1.0)
    assert answer == (None if method in WITHOUT_ANSWER else (method, *arguments))
    assert counted["kubelet_runtime_operations_total"] == {(operation,): 1}
    assert counted["kubelet_runtime_operations_errors_total"] == {}
    assert counted["kubelet_runtime_operations_duration_seconds"][operation,].sum == pytest.approx(1.0)


@pytest.mark.parametrize(("method", "arguments", "operation", "limit"), CALLS)
def test_a_call_that_takes_too_long_is_an_error_of_the_runtime(
    method: str, arguments: tuple[Any, ...], operation: str, limit: float | None
) -> None:
    answer, seconds, counted = called(method, arguments, 10_000.0)
    if limit is None:
        assert seconds == pytest.approx(10_000)
        return
    assert isinstance(answer, RuntimeServiceError) and answer.reason == "DeadlineExceeded"
    assert str(answer) == "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    assert seconds == pytest.approx(limit)
    assert counted["kubelet_runtime_operations_errors_total"] == {(operation,): 1}


def test_the_runtime_s_own_errors_stay_what_they_are() -> None:
    own = RuntimeServiceError("no", "NotFound")
    answer, _, counted = called("container_status", ("c",), 0.0, own)
    assert answer is own
    assert counted["kubelet_runtime_operations_errors_total"] == {("container_status",): 1}
    assert counted["kubelet_runtime_operations_total"] == {("container_status",): 1}
    answer, _, counted = called("container_status", ("c",), 0.0, late := TimeoutError("its own"))
    assert answer is late
    assert counted["kubelet_runtime_operations_errors_total"] == {}


def test_started_pods_are_the_sandboxes_that_were_asked_for() -> None:
    counted = called("run_pod_sandbox", ("config", ""), 0.0, RuntimeServiceError("no"))[2]
    assert counted["kubelet_started_pods_total"] == counted["kubelet_started_pods_errors_total"] == {(): 1}
    counted = called("status", ())[2]
    assert counted["kubelet_started_pods_total"] == counted["kubelet_started_pods_errors_total"] == {(): 0}


def test_streams_end_by_themselves_and_are_not_counted() -> None:
    async def main(world: World) -> Any:
        inner = Runtime(world, 2 * RUNTIME_REQUEST_TIMEOUT)
        runtime = RuntimeWithDeadlines(inner, world.clock)  # type: ignore[arg-type]
        answers = await asyncio.gather(
            runtime.exec("c", ("sh",), tty=True, stdin=False),
            runtime.attach("c", stdin=True, stdout=False, stderr=True),
            runtime.port_forward("s", 80),
        )
        await runtime.close()
        counted = [list(rows) for name, rows in runtime.families() if name == "kubelet_runtime_operations_total"]
        return answers, runtime.get_container_events(), inner.closed, counted

    answers, events, closed, counted = run_virtual(main)
    assert answers == [
        ("exec", "c", ("sh",), True, False),
        ("attach", "c", True, False, True),
        ("port_forward", "s", 80),
    ]
    assert (events, closed, counted) == ("events", True, [[]])
