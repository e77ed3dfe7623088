"""What no linter here can say, read from the source itself.

One door for time, tasks, randomness and the outside world (`lastcall.world`), and the short lists of files that may do
what others may not.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "lastcall"
FILES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
WORLD = "world/"
SHIM = "cri/sandbox/shim/"
STDLIB_ONLY = (
    "cri/sandbox/cgroups/",
    "cri/sandbox/seccomp/",
    "world/files.py",
    "world/messages.py",
    "world/walls.py",
    "world/wire.py",
)
"""What the shim uses beside its own modules."""
STDLIB_ONLY_MODULES = tuple("lastcall." + name.removesuffix(".py").strip("/").replace("/", ".") for name in STDLIB_ONLY)

DOORS = {
    "time.time": "world.clock",
    "time.time_ns": "world.clock",
    "time.monotonic": "world.clock",
    "time.monotonic_ns": "world.clock",
    "time.perf_counter": "world.clock",
    "time.sleep": "world.clock.sleep",
    "datetime.datetime.now": "world.clock.now",
    "datetime.datetime.utcnow": "world.clock.now",
    "datetime.date.today": "world.clock.now",
    "asyncio.sleep": "world.clock.sleep",
    "asyncio.create_task": "Tasks.spawn",
    "asyncio.ensure_future": "Tasks.spawn",
    "asyncio.TaskGroup": "Tasks",
    "asyncio.gather": "world.tasks.gather",
    "asyncio.to_thread": "world",
    "uuid.uuid1": "world.new_uid",
    "uuid.uuid4": "world.new_uid",
}
"""What stands behind a door, and the door."""

THROUGH_THE_WALL = {
    "apiserver/auth/pki.py": {"datetime.datetime.now"},  # certificates are valid by the machine's own clock
    "apiserver/policies/deciding.py": {"asyncio.to_thread"},  # expressions that take long
    "apiserver/expressions/rules.py": {"asyncio.to_thread"},  # rules that cost much
    "apiserver/auth/tokens.py": {"asyncio.to_thread"},  # cryptography is loaded after the start
    # Blocking work on files of the host, off the event loop; the virtual world has no such modules.
    "cluster/local_path.py": {"asyncio.to_thread"},  # a volume with all that is in it is removed
    "cri/sandbox/cni/network.py": {"asyncio.to_thread"},  # a thread enters the network namespace
    "cri/sandbox/images/store.py": {"asyncio.to_thread"},
    "cri/sandbox/images/pull.py": {"asyncio.to_thread"},
    "cri/sandbox/images/downloads.py": {"asyncio.to_thread"},
    "cri/sandbox/images/registry.py": {"asyncio.to_thread"},  # the machine's certificates, 20 ms
    "cri/sandbox/runtime.py": {"asyncio.to_thread", "asyncio.gather"},  # gather: awaited where it is started
    "node/eviction/host_stats.py": {"asyncio.to_thread"},
    "node/logs/rotation.py": {"asyncio.to_thread"},
    "node/static_pods/directory.py": {"asyncio.to_thread"},
    "node/volumes/manager.py": {"asyncio.to_thread"},
    # The shim is a standard-library program with a loop of its own (docs/architecture/processes.md).
    "cri/sandbox/cgroups/files.py": {"time.sleep"},  # a killed process is waited for, after the event loops
    "cri/sandbox/shim/__main__.py": {"time.monotonic_ns", "time.time_ns"},
    "cri/sandbox/shim/containers.py": {"time.time_ns", "time.sleep"},
    "cri/sandbox/shim/dispositions.py": {"time.sleep"},  # a shell that begins a child is looked at again
    "cri/sandbox/shim/execs.py": {"time.monotonic_ns"},
    "cri/sandbox/shim/logs.py": {"time.monotonic", "time.time_ns"},
    "cri/sandbox/shim/loop.py": {"time.monotonic_ns"},
    "cri/sandbox/shim/process.py": {"time.time_ns"},
    "cri/sandbox/shim/witness.py": {"time.monotonic_ns"},
}
"""Exceptions, each with its reason."""

STARTS_PROCESSES = {
    "cluster/staying/credentials.py",  # the cluster's certificates are made in a fork that ends with it
    "cluster/load.py",  # the generator on the host, a Python without a shell
    "cli/manifests/kustomize.py",  # kubectl kustomize
    "cluster/staying/child.py",  # lastcall up, for a program
    "cli/showing/link.py",  # the live page of a command, a Python without a shell
    "cli/showing/forecaster.py",  # what plays rollouts in virtual time for that page, likewise
    "cli/staying/execute.py",  # the command of lastcall exec
    "cli/image/engines.py",  # docker or podman, which save the images
    "world/id_maps.py",  # newuidmap
    "world/linux.py",  # clone3
    "world/probes.py",  # a child tries what the machine allows
    "cluster/staying/detach.py",  # forks the front that outlives its terminal
    "cluster/init.py",  # forks the roles, executes the shim
    "cluster/runtime/other/runtime.py",  # what asks a container runtime, a Python without a shell
    "cluster/egress/host_credentials.py",  # docker's credential helpers
    "cri/sandbox/images/from_host.py",  # asks busybox for its commands
    "cri/sandbox/shim/child.py",  # what a container runs
    "cri/sandbox/shim/namespaces.py",  # a child that is a Pod's root writes its sysctls
    "cri/sandbox/shim/pause.py",  # PID 1 of shared PIDs, a program of its own
}
PROCESS_CALLS = ("os.fork", "os.forkpty", "os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.popen")

OBSERVES = {
    "agent/container.py",  # processes of a Pod, as the kernel of their node shows them
    "agent/node.py",  # rules of the node, as its kernel shows them
    "apiserver/records.py",  # its own writes
    "cli/waiting/follow.py",  # watch events a client saw
    "cli/run/session.py",  # the DELETE it sent
    "cluster/init.py",  # wait statuses of the roles
    "cluster/health/walls.py",  # what its walls caught
    "cri/sandbox/shim/__main__.py",  # what its walls caught
    "cluster/health/orphans.py",  # wait statuses of what a dead shim left
    "controllers/cronjob/controller.py",  # its own decision
    "controllers/services/endpointslice/controller.py",  # the slices it wrote
    "controllers/deployment/controller.py",  # the sizes it wrote
    "controllers/garbagecollector/controller.py",  # its own decision
    "controllers/pods/control.py",  # its own decision
    "controllers/job/ttl_after_finished.py",  # its own decision
    "controllers/volumes/protection.py",  # its own decision
    "cri/sandbox/recorded_network.py",  # what the Pod network answered
    "cri/sandbox/shim/containers.py",  # processes: /proc, signals, wait statuses
    "node/image_manager.py",
    "node/stopping/kill_container.py",
    "node/stopping/kill_pod.py",
    "node/eviction/manager.py",
    "node/kubelet.py",
    "node/workers/mirrors.py",
    "node/admission/manager.py",
    "node/workers/manager.py",
    "node/prober/worker.py",
    "node/runtime/manager.py",
    "node/runtime/resize.py",
    "node/shutdown/manager.py",
    "node/runtime/start_container.py",
    "node/status/manager.py",
    "node/volumes/manager.py",
    "proxy/policies/agent.py",  # the rules it wrote
    "proxy/proxier.py",  # what the kernel answered
    "proxy/slice_records.py",  # the watch events it saw, the rules it wrote
    "scheduler/scheduler.py",
    "scheduler/victims.py",  # the deletion it decided
}
"""The files that may write a record with evidence `observed`: their code saw or did it."""

PREDICTS = {"cri/simulated_reports.py", "node/volumes/simulated.py"}
"""What they record happened in no kernel."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each name of a module stands for: `sleep` → `asyncio.sleep`, `dt` → `datetime`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str:
    """`asyncio.sleep` for the expression that means it; "" for what is no imported name."""
    if isinstance(node, ast.Attribute):
        owner = full_name(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    return ""


def used_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, full name) of everything imported that a module uses or imports from."""
    names = imported_names(tree)
    shadowed = {argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for argument in _all(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Attribute):
            root = node
            while isinstance(root.value, ast.Attribute):
                root = root.value
            if isinstance(root.value, ast.Name) and root.value.id in shadowed:
                continue
            if name := full_name(node, names):
                yield node.lineno, name


def _all(arguments: ast.arguments) -> list[ast.arg]:
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


@pytest.mark.parametrize("name", FILES)
def test_time_tasks_and_identities_come_through_the_one_door(name: str) -> None:
    if name.startswith(WORLD):
        return
    allowed = THROUGH_THE_WALL.get(name, set())
    found = [f"{name}:{line}: {used}, take {DOORS[used]}" for line, used in used_names(FILES[name])
             if used in DOORS and used not in allowed]  # fmt: skip
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", FILES)
def test_nobody_uses_the_random_module_s_own_generator(name: str) -> None:
    if name.startswith(WORLD):
        return
    wrong = [f"{name}:{line}: {used}, take world.random" for line, used in used_names(FILES[name])
             if used.startswith("random.") and used != "random.Random"]  # fmt: skip
    assert not wrong, "\n".join(wrong)


def test_the_exceptions_are_still_needed() -> None:
    for name, allowed in THROUGH_THE_WALL.items():
        unused = allowed - {used for _, used in used_names(FILES[name])}
        assert not unused, f"{name} no longer uses {unused}"


def test_only_a_few_files_start_processes_and_none_uses_a_shell() -> None:
    starts: set[str] = set()
    for name, tree in FILES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                raise AssertionError(f"{name}:{node.value.lineno}: shell=")
        for _line, used in used_names(tree):
            if used.startswith(PROCESS_CALLS) or used.split(".")[0] in ("subprocess", "multiprocessing", "pty"):
                starts.add(name)
            assert used not in ("os.system", "os.popen"), f"{name}: {used}"
    assert starts == STARTS_PROCESSES


def record_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, evidence) of the calls that write a record; evidence is "" where it is decided at run time."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "record":
            continue
        owner = node.func.value
        owner_name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
        if not owner_name.strip("_").endswith("recorder"):
            continue
        given = next((keyword.value for keyword in node.keywords if keyword.arg == "evidence"), None)
        yield node.lineno, "observed" if given is None else given.value if isinstance(given, ast.Constant) else ""


def test_only_the_listed_files_write_what_they_observed() -> None:
    observing = {name for name, tree in FILES.items() if any(e in ("observed", "") for _, e in record_calls(tree))}
    assert observing == OBSERVES


def test_what_is_simulated_says_so() -> None:
    predicting = {name for name, tree in FILES.items() if any(e == "predicted" for _, e in record_calls(tree))}
    assert predicting == PREDICTS


def test_the_structs_of_cri_come_through_their_door() -> None:
    for name, tree in FILES.items():
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        through = name == "cri/api.py" or name.startswith("cri/structs/")
        assert through or not any(module.startswith("lastcall.cri.structs") for module in modules), name
    assert any(isinstance(node, ast.ImportFrom) and node.module == "lastcall.cri.structs.containers"
               for node in FILES["cri/api.py"].body)  # fmt: skip


def test_package_files_import_nothing() -> None:
    for name, tree in FILES.items():
        if name.endswith("__init__.py") and name != "__init__.py":
            assert not [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)], name


def test_the_package_itself_imports_its_api_for_type_checkers_only() -> None:
    at_once = [node for node in FILES["__init__.py"].body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in at_once] == ["from __future__ import annotations"]


def test_the_shim_needs_only_the_standard_library_and_its_own_layer() -> None:
    world = ("lastcall.world.linux", "lastcall.world.privileges", "lastcall.world.id_maps")
    allowed = ("lastcall.cri.sandbox.shim", *STDLIB_ONLY_MODULES, "lastcall.timeline", *world)
    for name, tree in FILES.items():
        if not name.startswith((SHIM, *STDLIB_ONLY)):
            continue
        for node in ast.walk(tree):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            for module in modules:
                top = module.split(".")[0]
                assert top == "lastcall" or top in sys.stdlib_module_names, f"{name}: {module}"
                assert top != "lastcall" or module.startswith(allowed), f"{name}: {module}"


def test_the_checks_see_what_they_are_for() -> None:
    bad = ast.parse(
        "import asyncio, random, time as t\nfrom uuid import uuid4\nfrom datetime import datetime\n"
        "asyncio.sleep(1)\nt.time()\nrandom.choice([])\ndatetime.now()\n"
        "def f(random): return random.random()\n"
        "self._recorder.record('x')\nrecorder.record('x', evidence='predicted')\n"
    )
    used = {name for _, name in used_names(bad)}
    assert {"asyncio.sleep", "time.time", "uuid.uuid4", "datetime.datetime.now"} <= used
    assert [evidence for _, evidence in record_calls(bad)] == ["observed", "predicted"]
    assert "random.choice" not in used, "a parameter of that name hides the module, in the whole file"
    assert "random.choice" in {name for _, name in used_names(ast.parse("import random\nrandom.choice([])"))}
