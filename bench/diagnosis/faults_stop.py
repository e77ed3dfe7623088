"""Lists the faults of the stop."""

from collections.abc import Callable
from random import Random
from typing import Any

from bench.diagnosis.application import Application, container_of
from bench.diagnosis.fault import Apply, Fault
from bench.diagnosis.programs import OnStop, Program

SERVERS = ("single", "slowStart", "pair", "queue", "job", "stateful", "sidecar")
"""Shapes in which a program of our own is PID 1."""
NO_JOB = tuple(each for each in SERVERS if each != "job")
"""Work of a Job that is not done yet rightly ends with another code than 0: with 0 the Job would count as complete."""
ALL = (*SERVERS, "master", "wrapper", "init", "database", "batch")


def behaves(**changes: Any) -> Apply:
    """Return what changes fields of the program."""

    def apply(app: Application, name: str, _: Random) -> None:
        for field, value in changes.items():
            setattr(app.programs[name], field, value)

    return apply


def on_stop(value: OnStop) -> Apply:
    return behaves(on_stop=value)


def hook(command: Callable[[Random], dict[str, Any]], grace: int | None = None) -> Apply:
    """Return what gives the container a preStop hook."""

    def apply(app: Application, name: str, random: Random) -> None:
        container_of(app.spec, name)["lifecycle"] = {"preStop": command(random)}
        if grace:
            app.spec["terminationGracePeriodSeconds"] = grace

    return apply


def shell_stays(app: Application, name: str, _: Random) -> None:
    app.programs[name].wrapped = "child"


def trap_waits(app: Application, name: str, random: Random) -> None:
    """Let a shell with a trap run commands in the foreground: one for ever, or one after the other.

    The shell is PID 1 and has a handler, so that `exec` is no repair: it takes the trap away.
    """
    app.programs[name].on_stop = "waitForWorkers"
    app.programs[name].slow_seconds = random.choice((3600, 3))


def init_child_ignores(app: Application, name: str, random: Random) -> None:
    app.programs[name].on_stop = random.choice(("ignore", "block"))


def grace_too_short(app: Application, name: str, random: Random) -> None:
    app.programs[name].drain_seconds = random.choice((3.0, 4.0))
    app.spec["terminationGracePeriodSeconds"] = 2
    container_of(app.spec, name).pop("lifecycle", None)


def non_zero(app: Application, name: str, random: Random) -> None:
    app.programs[name].exit_code = random.choice((1, 2, 3, 42))


def zombies(app: Application, name: str, _: Random) -> None:
    app.programs[name].leaves_zombies = True


def memory(who: Any) -> Apply:
    """Return what needs more than the limit: a little, or so much that twice the limit is not enough.

    Nobody sees how much a program would have needed, so a repair by a larger limit cannot always be right.
    """

    def apply(app: Application, name: str, random: Random) -> None:
        app.programs[name].eats, app.programs[name].eats_mebibytes = who, random.choice((80, 90, 200))
        container_of(app.spec, name)["resources"] = {"limits": {"memory": "64Mi"}}

    return apply


def killer(app: Application, name: str, random: Random) -> None:
    """Let a helper end the program by SIGKILL, before anybody deletes the Pod."""
    file = app.programs[name].file
    helper = random.choice(("watchdog", "supervisor", "guard"))
    text = (
        "sleep 2\n"
        f"for d in /proc/[0-9]*; do\n  if tr '\\0' ' ' < $d/cmdline | grep -q '{file}'; then\n"
        "    [ $d != /proc/$$ ] && kill -9 ${d#/proc/}\n  fi\ndone\n"
        "trap 'exit 0' TERM\nwhile true; do sleep 0.1; done\n"
    )
    app.spec["shareProcessNamespace"] = True
    container = {"name": helper, "image": app.image, "imagePullPolicy": "IfNotPresent"}
    app.spec["containers"].append({**container, "command": ["sh", f"/app/{helper}.sh"]})
    program = Program("shell", 0, "", f"{helper}.sh", app.program.words, extra={f"{helper}.sh": f"#!/bin/sh\n{text}"})
    app.programs[helper] = program


def finalizer(app: Application, _: str, random: Random) -> tuple[str, ...]:
    name = f"{random.choice(('ops', 'backup', 'mesh'))}.example.com/{random.choice(('cleanup', 'guard', 'release'))}"
    app.metadata["finalizers"] = [name]
    return (name,)


def ended_by_itself(app: Application, name: str, _: Random) -> None:
    """Let the container succeed before the DELETE, while its neighbour runs on; its hook has nobody to run in."""
    container = container_of(app.spec, name)
    container["command"] = ["sh", "-c", "sleep 2; echo all done"]
    container["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", "echo saving"]}}}
    app.spec["restartPolicy"] = "Never"


def sidecar_leaves_first(app: Application, name: str, _: Random) -> None:
    """Make the program need a proxy that is an ordinary container, which ends on the same signal."""
    app.programs[name].on_stop = "tellSidecar"
    words = app.programs[name].words
    app.programs[app.neighbour] = Program("server", 15001, "/", "proxy.py", words, on_stop="leave")


def job_held(app: Application, _: str, random: Random) -> None:
    """Put the sidecar of a Job, whose work ends, among its containers."""
    helper = random.choice(("shipper", "proxy", "exporter"))
    app.container["command"] = ["sh", "-c", "sleep 1; echo work is done"]
    container = {"name": helper, "image": app.image, "imagePullPolicy": "IfNotPresent"}
    app.spec["containers"].append(container)
    app.programs[helper] = Program("shell", 0, "", f"{helper}.sh", app.program.words)


NOT_HANDLED = frozenset({"stopSignalNotHandled"})
_HANDLERS = frozenset({"handleStopSignal"})

STOP = (
    Fault("noHandler", "stop", (*SERVERS, "database"), on_stop("nothing"), NOT_HANDLED, _HANDLERS, anywhere=True),
    Fault(
        "noHandlerInMaster", "stop", ("master",), on_stop("nothing"), NOT_HANDLED, _HANDLERS,
        frozenset({"killed", "childrenNotSignalled"}),
    ),
    Fault("noHandlerInShell", "stop", ("batch",), on_stop("nothing"), NOT_HANDLED | {"shellKeepsSignal"}, _HANDLERS),
    Fault("handlesOtherSignal", "stop", SERVERS, on_stop("interruptOnly"), NOT_HANDLED, _HANDLERS),
    Fault("ignores", "stop", (*SERVERS, "batch"), on_stop("ignore"), NOT_HANDLED, _HANDLERS | {"stopIgnoringSignal"}),
    Fault("blocks", "stop", SERVERS, on_stop("block"), NOT_HANDLED, _HANDLERS | {"unblockSignal"}),
    Fault(
        "shellKeepsSignal", "stop", ("wrapper",), shell_stays, frozenset({"shellKeepsSignal"}),
        frozenset({"useExec", "passSignalOn"}), frozenset({"killed", "stopSignalNotHandled"}),
    ),
    Fault(
        "shellRunsTrapLate", "stop", ("batch",), trap_waits, frozenset({"shellRunsTrapLate"}),
        frozenset({"passSignalOn"}), shows=False,
    ),
    Fault(
        "workersLeft", "stop", ("master",), on_stop("leaveWorkers"), frozenset({"childrenNotSignalled"}),
        frozenset({"passSignalOn"}), shows=False,
    ),
    Fault(
        "workersNotSignalled", "stop", ("master",), on_stop("waitForWorkers"), frozenset({"childrenNotSignalled"}),
        frozenset({"passSignalOn"}),
    ),
    Fault(
        "initsChildIgnores", "stop", ("init",), init_child_ignores, frozenset({"childIgnoresSignal"}),
        frozenset({"stopIgnoringSignal", "unblockSignal", "handleStopSignal"}),
    ),
    Fault(
        "waitsForClients", "stop", ("database",), on_stop("waitForClients"), frozenset({"connectionsOpenAtKill"}),
        frozenset({"closeIdleConnections"}),
    ),
    Fault(
        "hookTooLong", "stop", ALL,
        hook(lambda r: {"exec": {"command": ["sh", "-c", f"sleep {r.choice((8, 9, 11))}"]}}, 3),
        frozenset({"hookOutlived"}), frozenset({"fixHook"}), anywhere=True,
    ),
    Fault(
        "hookFails", "stop", ALL,
        hook(lambda r: {"exec": {"command": ["sh", "-c", f"echo cannot deregister >&2; exit {r.choice((1, 2, 7))}"]}}),
        frozenset({"hookFailed"}), frozenset({"fixHook"}), anywhere=True,
    ),
    Fault(
        "hookProgramMissing", "stop", ALL,
        hook(lambda r: {"exec": {"command": [f"/opt/{r.choice(('hooks', 'bin'))}/drain", "--now"]}}),
        frozenset({"hookFailed"}), frozenset({"fixHook"}), anywhere=True,
    ),
    Fault(
        "hookDiesWithContainer", "stop", ("single", "queue", "master", "pair"),
        hook(lambda r: {"exec": {"command": ["sh", "-c", "kill -TERM 1; sleep 3"]}}),
        frozenset({"hookDiedWithContainer"}), frozenset({"fixHook"}), frozenset({"hookFailed"}),
    ),
    Fault(
        "endedBeforeHook", "stop", ("pair",), ended_by_itself, frozenset({"hookNotRun", "endedByItself"}),
        frozenset({"fixHook"}), args=("--after", "4s"),
    ),
    Fault("graceTooShort", "stop", ALL, grace_too_short, frozenset({"killed"}), symptoms=frozenset()),
    Fault(
        "reloads", "stop", ("master",), on_stop("reload"), frozenset({"reloadsOnSignal"}),
        frozenset({"endOnStopSignal"}),
    ),
    Fault(
        "handlerRaises", "stop", NO_JOB, on_stop("raise"), frozenset({"exitCodeNotZero"}),
        frozenset({"exitZero", "fixCrash"}),
    ),
    Fault(
        "exitCode", "stop", (*NO_JOB, "master", "wrapper", "init", "database", "batch"), non_zero,
        frozenset({"exitCodeNotZero"}), frozenset({"exitZero", "fixCrash"}), anywhere=True,
    ),
    Fault(
        "outOfMemory", "stop", SERVERS, memory("self"), frozenset({"outOfMemory"}), frozenset({"useLessMemory"}),
        frozenset({"crashed", "crashLoop"}), args=("--after", "4s"),
    ),
    Fault(
        "childOutOfMemory", "stop", SERVERS, memory("child"), frozenset({"childOutOfMemory", "outOfMemory"}),
        frozenset({"useLessMemory"}), frozenset({"crashed", "crashLoop", "zombies"}), args=("--after", "4s"),
        shows=False,
    ),
    Fault(
        "killedFromInside", "stop", ("single", "queue", "stateful"), killer, frozenset({"killedByOther"}),
        frozenset({"stopKilling"}), frozenset({"crashed", "crashLoop"}), args=("--after", "4s"),
    ),
    Fault(
        "masterKillsWorkers", "stop", ("master",), on_stop("killWorkers"),
        frozenset({"childKilledInside", "exitCode137OfItsOwn"}),
        frozenset({"passSignalOn", "handleStopSignal", "exitZero", "raiseOwnTimeout"}), frozenset({"exitCodeNotZero"}),
    ),
    Fault(
        "finalizer", "stop", ("single", "batch", "pair"), finalizer, frozenset({"heldByFinalizers"}),
        by_words="finding", args=("--timeout", "6s"),
    ),
    Fault(
        "sidecarLeavesFirst", "stop", ("pair",), sidecar_leaves_first, frozenset({"sidecarEndsFirst"}), frozenset(),
        frozenset({"exitCodeNotZero"}), beside=True,
    ),
    Fault(
        "zombies", "stop", SERVERS, zombies, frozenset({"zombies"}), frozenset({"reapChildren"}), shows=False,
    ),
    Fault(
        "sidecarHoldsJob", "stop", ("job",), job_held, frozenset({"sidecarHoldsJob"}), args=("--after", "3s"),
        shows=False, beside=True,
    ),
)  # fmt: skip
