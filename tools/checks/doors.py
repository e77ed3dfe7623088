"""Time, tasks, randomness, processes and heavy libraries are reached through one place each."""

import ast
from collections.abc import Container

from checks.report import Report
from checks.source import Project, Source, is_in

WORLD = "lastcall.world"
DOORS = {
    "time.time": "lastcall.world.clock",
    "time.time_ns": "lastcall.world.clock",
    "time.monotonic": "lastcall.world.clock",
    "time.monotonic_ns": "lastcall.world.clock",
    "time.perf_counter": "lastcall.world.clock",
    "time.sleep": "lastcall.world.clock.sleep",
    "datetime.datetime.now": "lastcall.world.clock.now",
    "datetime.datetime.utcnow": "lastcall.world.clock.now",
    "datetime.date.today": "lastcall.world.clock.now",
    "dataclasses.dataclass": "lastcall.world.dataclass, which imports ten times as fast",
    "asyncio.sleep": "lastcall.world.clock.sleep",
    "asyncio.create_task": "lastcall.world.tasks.Tasks.spawn",
    "asyncio.ensure_future": "lastcall.world.tasks.Tasks.spawn",
    "asyncio.TaskGroup": "lastcall.world.tasks.Tasks",
    "asyncio.gather": "lastcall.world.tasks.gather",
    "asyncio.to_thread": "a function that does not block, because virtual time has no threads",
    "uuid.uuid1": "lastcall.world.new_uid",
    "uuid.uuid4": "lastcall.world.new_uid",
}
"""Functions that code outside of `lastcall.world` does not call, and what it uses instead."""

LIBRARIES = ("prometheus_client", "opentelemetry", "requests", "google.protobuf")
"""Libraries that cost only the commands that need them."""

PROCESS_CALLS = ("os.fork", "os.forkpty", "os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.popen")
PROCESS_MODULES = ("subprocess", "multiprocessing", "pty")
SHELLS = ("os.system", "os.popen")


def doors(project: Project, report: Report) -> None:
    """Check that time, tasks and identities come through `lastcall.world`, and that each exception is needed."""
    for source in project.sources:
        report.looked_at += 1
        allowed, needed = _allowed(source), set[str]()
        for line, name in source.used:
            if name in DOORS and not is_in(source.module, [WORLD]):
                needed.add(name)
                if name not in allowed:
                    report.wrong(source, line, f"{name} is used directly; use {DOORS[name]}")
        _needless(source, report, [each for each in allowed if each not in LIBRARIES], needed)


def own_random(project: Project, report: Report) -> None:
    """Check that nothing uses the generator of the module `random`."""
    for source in project.sources:
        if is_in(source.module, [WORLD]):
            continue
        report.looked_at += 1
        for line, name in source.used:
            if name.startswith("random.") and name != "random.Random":
                report.wrong(source, line, f"{name} has a seed of its own; use world.random")


def processes(project: Project, report: Report) -> None:
    """Check that only marked files start processes."""
    found: dict[str, int] = {}
    for source in project.sources:
        report.looked_at += 1
        for line, name in source.used:
            if name.startswith(PROCESS_CALLS) or name.split(".")[0] in PROCESS_MODULES:
                found.setdefault(source.path, line)
        for each in source.imports:
            if is_in(each.full, PROCESS_MODULES):
                found.setdefault(source.path, each.line)
    text = "it starts a process; use a file that does already, or write `# check: starts processes because <reason>`"
    report.needs_marker(project, "starts processes", found, text)


def shells(project: Project, report: Report) -> None:
    """Check that no file uses a shell."""
    for source in project.sources:
        report.looked_at += 1
        for keyword in source.nodes(ast.keyword):
            if keyword.arg == "shell":
                report.wrong(source, keyword.value.lineno, "shell= is given; give the program a list of arguments")
        for line, name in source.used:
            if name in SHELLS:
                report.wrong(source, line, f"{name} uses a shell; give subprocess a list of arguments")


def libraries(project: Project, report: Report) -> None:
    """Check that only marked files name a heavy library."""
    for source in project.sources:
        allowed, needed = [each for each in _allowed(source) if each in LIBRARIES], set[str]()
        for each in source.imports:
            for library in LIBRARIES:
                if not is_in(each.full, [library]):
                    continue
                report.looked_at += 1
                if library not in allowed and library not in needed:
                    text = f"it imports {library}; do without it, or write `# check: allow {library} because …`"
                    report.wrong(source, each.line, text)
                needed.add(library)
        _needless(source, report, allowed, needed)


def _allowed(source: Source) -> tuple[str, ...]:
    return tuple(name for marker in source.markers if marker.word == "allow" for name in marker.names)


def _needless(source: Source, report: Report, allowed: list[str], needed: Container[str]) -> None:
    for marker in source.markers:
        for name in marker.names:
            if marker.word == "allow" and name in allowed and name not in needed:
                report.wrong(source, marker.line, f"the marker allows {name} without effect; remove it")
