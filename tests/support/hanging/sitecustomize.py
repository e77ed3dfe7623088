"""Makes event loops hang, for tests: with this directory on PYTHONPATH every lastcall of theirs does so when asked.

| what | then |
|---|---|
| a request whose path ends with `/hang` | the API server's callback runs forever |
| a request whose path ends with `/hang-in-c` | in C, which never comes back to Python |
| a request whose path ends with `/sleep` | it sleeps forever in one system call |
| a request whose path ends with `/slow` | 4 s of processor time |
| a Job with the name `poison` | the Job controller's turn runs forever |
| a Pod with the name `poison`, the first time | the kubelet's callback runs forever |
"""

import importlib.util
import mmap
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

_once = mmap.mmap(-1, 1)
"""Shared with the role that is started again: a memory that was made before the fork."""


def spin() -> None:
    while True:
        pass


def spin_in_c() -> None:
    import collections
    import itertools

    collections.deque(itertools.repeat(None), maxlen=0)


def use_time(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


ENDINGS: dict[str, Callable[[], None]] = {
    "/hang": spin,
    "/hang-in-c": spin_in_c,
    "/sleep": lambda: time.sleep(1e6),  # a process that hangs
    "/slow": lambda: use_time(4),
}


def in_requests(module: ModuleType) -> None:
    handler = module.APIHandler
    handle = handler._handle

    async def hang(self: Any, request: Any) -> Any:
        for ending, what in ENDINGS.items():
            if request.path.endswith(ending):
                what()
        return await handle(self, request)

    handler._handle = hang


def in_jobs(module: ModuleType) -> None:
    from lastcall.world import crash_guard

    controller = module.JobController
    sync = controller._sync

    async def hang(self: Any, key: str) -> Any:
        if key.endswith("/poison"):
            if crash_guard.on_turn is not None:
                crash_guard.on_turn("job-controller", key)
            spin()
        return await sync(self, key)

    controller._sync = hang


def in_kubelet(module: ModuleType) -> None:
    kubelet = module.Kubelet
    handle = kubelet.handle_pod_additions

    def hang(self: Any, pods: Any) -> Any:
        if not _once[0] and any(pod["metadata"]["name"] == "poison" for pod in pods):
            _once[0] = 1
            spin()
        return handle(self, pods)

    kubelet.handle_pod_additions = hang


MODULES = {
    "lastcall.kube.apiserver.http": in_requests,
    "lastcall.kube.controllers.job.controller": in_jobs,
    "lastcall.kube.node.kubelet": in_kubelet,
}


class _Finder:
    """Changes the modules when they are imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        change = MODULES.pop(name, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, _Finder)
