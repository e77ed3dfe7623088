"""For each row of the table of causes: a story in which it speaks, and the change of it that each fact is silenced by.

A change is as small as the fact allows; `along(change)` is one that other facts of the row follow.
"""

from dataclasses import dataclass, replace
from typing import Any

import ending_stories as stories
from ending_stories import Story, begin, deleted, exited, run
from tape_changes import (
    BY_PROBE,
    NEWER,
    NO_SIGTERM,
    OUT_OF_MEMORY,
    TINI,
    Change,
    add,
    along,
    both,
    edit,
    known_by_its_object,
    of_kind,
    processes,
    program,
    ruled,
    shown,
    unsent,
    without,
)

from lastcall.endings.story import ContainerFacts, MountedFiles
from lastcall.records import kinds as k


@dataclass(frozen=True)
class Example:
    """`needs` and `refuted_by` have a change for each of the row's facts, in its order."""

    story: Story
    needs: tuple[Change, ...]
    refuted_by: tuple[Change, ...] = ()
    container: str = "app"


def holds_connections(tape: Any) -> None:
    tape.pod = replace(tape.pod, holds_connections=True)


# -- stories ---------------------------------------------------------------------------------------------------------


def refused(tape: Any) -> None:
    tape.started(at=-2.0)
    message = 'admission webhook "guard.example.com" denied the request: keep it'
    tape.add(-1.0, "apiserver", k.DELETE_REFUSED, user="admin", userAgent="kubectl", message=message)


def substituted(tape: Any) -> None:
    begin(tape)
    tape.add(-3.0, "kubelet", k.IMAGE_SUBSTITUTED, "app", image="busybox:1.36", substitute="the host's busybox")
    exited(tape)


def shim_died(tape: Any) -> None:
    begin(tape)
    tape.add(0.1, "init", k.PROCESS_DIED, role="node-1", pid=4, exitCode=1, signal=None, restartsIn=1.0)
    exited(tape)


def shortened(tape: Any) -> None:
    begin(tape)
    tape.add(0.1, "apiserver", k.GRACE_SHORTENED, **{"from": 30, "to": 5, "user": "a", "resourceVersion": "7"})
    exited(tape)


def held_by_finalizers(tape: Any) -> None:
    begin(tape)
    tape.exit(0.1, 0)
    tape.add(0.12, "apiserver", k.HELD_BY_FINALIZERS, resourceVersion="150", finalizers=["example.com/held"], user="n")


def evicted(tape: Any) -> None:
    stories.by_kubelet(tape, stories.PRESSURE, why="The node was low on resource: memory.")
    tape.exit(0.5, 0)


def killed_by_its_master(tape: Any) -> None:
    begin(tape)
    child = {"pid": 9, "containerPid": 2, "name": "worker", "disposition": "handled"}
    tape.add(3.0, "runtime", k.CHILD_ENDED, "app", **child, exitCode=137, signal="SIGKILL", secondsBefore=0.0)
    exited(tape, 3.01)


def says_that_a_signal_came(tape: Any) -> None:
    restarted_after(0)(tape)
    edit(k.OUTPUT, text="received SIGINT, stopping")(tape)


def post_start(outcome: str) -> Story:
    """Of a container that runs, and whose hook still runs or has ended at once."""

    def story(tape: Any) -> None:
        tape.started(at=-3.0)
        tape.add(-2.9, "kubelet", k.POST_START_STARTED, "app", handler="exec", detail="warm-up")
        if outcome:
            post_start_ends(-2.8, outcome)(tape)
        tape.accepted(10)

    return story


def post_start_ends(at: float, outcome: str = "succeeded") -> Change:
    return add(at, "kubelet", k.POST_START_FINISHED, handler="exec", outcome=outcome, seconds=0.1, exitCode=1)


def asks_port(port: int, *addresses: str) -> Story:
    """Of a container that runs, listens on 8080 at some addresses, and whose readinessProbe asks a port."""

    def story(tape: Any) -> None:
        tape.started(at=-9.0)
        listeners = [{"address": each, "port": 8080} for each in addresses]
        output = f"dial tcp 10.244.0.5:{port}: connect: connection refused"
        facts = {"probe": "readiness", "output": output, "port": port, "listeners": listeners}
        tape.add(-6.0, "kubelet", k.PROBE_FAILING, "app", **facts)

    return story


def refused_by_the_kernel(tape: Any) -> None:
    run(tape, -10, -9, code=255, lines=("exec /app/run: exec format error",))
    tape.started(at=-8)
    deleted(tape)


def reads_a_directory(tape: Any) -> None:
    files = (MountedFiles("/etc/app.conf", "conf", "ConfigMap", "settings"),)
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app", files=files),))
    run(tape, -10, -9, code=1, lines=("IsADirectoryError: [Errno 21] Is a directory: '/etc/app.conf'",))
    tape.started(at=-8)
    deleted(tape)


def reads_its_mount(tape: Any) -> None:
    files = (MountedFiles("/etc/app.conf", "conf", "ConfigMap", "settings"),)
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app", files=files),))
    edit(k.OUTPUT, text="read /etc/app.conf: is a directory")(tape)


def probe_succeeds(tape: Any) -> None:
    tape.add(-1.0, "kubelet", k.PROBE_CHANGED, "app", probe="readiness", result="success", output="", port=8081)


def post_start_held(tape: Any) -> None:
    post_start("")(tape)
    post_start_ends(4.0)(tape)
    tape.stop(4.01, 6)
    tape.exit(4.1, 0)
    tape.over(4.2, endpoint=False)


def missed_another_container(tape: Any) -> None:
    begin(tape)
    cache = {"address": "0.0.0.0", "port": 6379, "backlog": 0}
    tape.started("cache", pid=17)
    tape.add(0.01, "runtime", k.SIGNAL_SENT, "cache", signal="SIGTERM", pid=17, containerPid=1, why="StopContainer")
    facts = {"signal": "SIGTERM", "listeners": [cache], "connections": 0, "scope": "container"}
    tape.add(0.011, "runtime", k.SOCKETS_AT_STOP, "cache", **facts)
    tape.exit(0.02, 0, container="cache", pid=17)
    tape.output(0.3, "cannot flush: [Errno 111] Connection refused")
    tape.pod = replace(tape.pod, containers=(*tape.pod.containers, ContainerFacts("cache")))
    exited(tape, 0.4, code=1)


def went_on_without_another_container(tape: Any) -> None:
    missed_another_container(tape)
    edit(k.OUTPUT, text="502: Connection refused, upstream 127.0.0.1:6379")(tape)
    edit_of("app", k.PROCESS_EXITED, exitCode=0)(tape)


def edit_of(container: str, kind: str, **facts: Any) -> Change:
    """Return a change of the facts of one container's records of a kind."""

    def change(tape: Any) -> None:
        mine = [i for i, r in enumerate(tape.records) if r.kind == kind and r.container == container]
        for index in mine:
            tape.records[index] = replace(tape.records[index], facts={**tape.records[index].facts, **facts})

    return change


def below_a_shell(tape: Any) -> None:
    """Let all processes that were left be children of a shell."""
    edit(k.PROCESSES_LEFT, more=0)(tape)
    (left,) = [record for record in tape.records if record.kind == k.PROCESSES_LEFT]
    shell = {"containerPid": 2, "name": "sh", "disposition": "default"}
    stories.beside(tape, shell, *({**each, "parent": 2} for each in left.facts["processes"]))


def kind_of(container: str, kind: Any) -> Change:
    """Return a change of the kind of one container."""

    def change(tape: Any) -> None:
        those = tuple(replace(each, kind=kind) if each.name == container else each for each in tape.pod.containers)
        tape.pod = replace(tape.pod, containers=those)

    return change


def gone_before_its_containers(tape: Any) -> None:
    begin(tape)
    tape.add(0.1, "client", k.POD_GONE_SEEN, resourceVersion="152")
    tape.exit(0.5, 0)


def restarted_by(probe: str) -> Story:
    def story(tape: Any) -> None:
        stories.probed(tape, -30, -9, probe, stories.REFUSED, False)
        tape.started(at=-8)
        deleted(tape)

    return story


def init_fails(tape: Any) -> None:
    tape.pod = replace(tape.pod, containers=(ContainerFacts("wait", "init"), ContainerFacts("app")))
    run(tape, -10, -9.9, code=1, container="wait", lines=("no db",))
    tape.accepted(5)
    tape.over(0.2, endpoint=False)


def restarted_after(code: int) -> Story:
    def story(tape: Any) -> None:
        run(tape, -10, -9, code=code, lines=("FATAL",))
        tape.started(at=-8)
        deleted(tape)

    return story


def restarted_by_its_hook(tape: Any) -> None:
    stories.hook_failed(tape, -10, -9)
    tape.started(at=-8)
    deleted(tape)


def restarted_by_its_rule(tape: Any) -> None:
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app", restart_rules=(("In", (42,)),)),))
    restarted_after(42)(tape)


def never_started(tape: Any) -> None:
    tape.add(-1.0, "kubelet", k.CONTAINER_START_FAILED, "app", reason="ErrImagePull", message="not found")
    tape.accepted(5)
    tape.over(0.2, endpoint=False)


def ended_by_itself(tape: Any) -> None:
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    exited(tape, 0.3)


def ended_with_its_hook(tape: Any) -> None:
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    tape.hook(0.01, 0.5, "failed", exitCode=137)
    exited(tape, 0.505)


def hook_runs(tape: Any) -> None:
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    tape.hook(0.01, 2.0)
    tape.records[:] = [each for each in tape.records if each.kind != k.PRE_STOP_FINISHED]


def hook_ends(outcome: str) -> Story:
    def story(tape: Any) -> None:
        tape.started()
        tape.accepted(10)
        tape.observed(10)
        tape.hook(0.01, 0.05, outcome, exitCode=1)
        tape.stop(0.1, 10)
        exited(tape, 0.4)

    return story


def is_a_sidecar_with_a_hook(tape: Any) -> None:
    """Change a container that ended by itself."""
    tape.pod = type(tape.pod)(
        tape.uid, "default", "web", containers=(ContainerFacts("app", "sidecar"), ContainerFacts("web"))
    )
    tape.started("web")
    (exited,) = [record for record in tape.records if record.kind == k.PROCESS_EXITED]
    edit(k.PROCESS_EXITED, at=0.02)(tape)
    assert exited.container == "app"
    tape.hook(0.01, 0.005, container="app", handler="httpGet")


def sidecar_ended_by_its_hook(tape: Any) -> None:
    tape.pod = type(tape.pod)(
        tape.uid, "default", "web", containers=(ContainerFacts("app", "sidecar"), ContainerFacts("web"))
    )
    tape.started()
    tape.started("web")
    tape.accepted(10)
    tape.observed(10)
    tape.hook(0.01, 0.005, container="app", handler="httpGet")
    tape.exit(0.02, 0)
    tape.stop(0.03, 10, container="web", disposition="handled")
    tape.exit(0.5, 0, container="web")
    tape.over(0.6, endpoint=False)


def hook_may_not_signal(tape: Any) -> None:
    hook_ends("failed")(tape)
    edit(k.PRE_STOP_FINISHED, stderr="sh: can't kill pid 1: Operation not permitted")(tape)


def hook_skipped(tape: Any) -> None:
    begin(tape)
    tape.add(0.004, "kubelet", k.PRE_STOP_SKIPPED, "app", why="a grace period of 0 s leaves no time for the hook")
    exited(tape)


def barely_begun(tape: Any) -> None:
    tape.started(at=-0.08)
    tape.accepted()
    tape.stop(0.01, 30, disposition="default")
    exited(tape, 1.5)


def trap_runs_late(tape: Any) -> None:
    begin(tape, ("sh", "-c", "trap 'exit 0' TERM; work"), exe="/bin/busybox")
    tape.output(0.6, "draining")
    exited(tape, 2.0)


def killed_by_another(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.5, 137, 9)


def pause_was_told_to_end(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.5, 137, 9)
    tape.add(0.501, "runtime", k.PAUSE_ENDED, exitCode=0, signal="")


def removed(tape: Any) -> None:
    begin(tape)
    tape.signal(0.4, "SIGKILL", "RemoveContainer")
    exited(tape, 0.5, 137, 9)


def hook_is_not_counted(tape: Any) -> None:
    tape.version = "1.23"
    tape.started()
    tape.accepted(10)
    tape.observed(10)
    tape.hook(0.006, 2.003, budget=10)
    tape.stop(2.01, 10)
    exited(tape, 3.0)


def ends_with_0_in_a_job(tape: Any) -> None:
    tape.started(at=-5.0)
    tape.add(
        -0.01, "garbage-collector", k.DELETION_DECIDED, rule="garbagecollector.go:attemptToDeleteItem",
        why="its owner is gone", ownerKind="Job", owner="report", ownerUid="j",
    )  # fmt: skip
    stories.deleted_by_controller(tape)
    tape.observed(10)
    tape.stop(0.005, 10)
    tape.exit(0.2, 0)


def another_had_ended(tape: Any) -> None:
    """Change a Pod of one container into one of two, of which one is done."""
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), ContainerFacts("work")))
    tape.started("work", 8, -5.0)
    tape.exit(-3.0, 0, container="work", pid=8)


def another_fails(tape: Any) -> None:
    """Change a Pod of one container into one of two, of which the other ends with another code than 0."""
    tape.pod = replace(tape.pod, containers=(ContainerFacts("app"), ContainerFacts("work")))
    tape.started("work", 8, -5.0)
    tape.exit(0.3, 143, container="work", pid=8)


def fails_on_its_signal(tape: Any) -> None:
    begin(tape)
    exited(tape, 0.5, 1)


def sidecar_fails_on_its_signal(tape: Any) -> None:
    fails_on_its_signal(tape)
    of_kind("sidecar")(tape)


def completed_by_itself(tape: Any) -> None:
    """It had ended, and nobody deleted its Pod."""
    without(k.DELETE_ACCEPTED, k.DELETE_SENT, k.POD_GONE_SEEN, k.OBJECT_REMOVED)(tape)
    edit(k.TERMINATION_OBSERVED, cause="completed")(tape)
    moved = next(r for r in tape.records if r.kind == k.TERMINATION_OBSERVED).at_ns - round(0.1 * 1e9)
    tape.records[:] = [replace(r, at_ns=moved) if r.kind == k.PROCESS_EXITED else r for r in tape.records]


EXAMPLES: dict[str, Example] = {
    # records
    "deleteRefused": Example(refused, (lambda tape: tape.accepted(),)),
    "imageSubstituted": Example(substituted, (without(k.IMAGE_SUBSTITUTED),)),
    "processDied": Example(shim_died, (without(k.PROCESS_DIED),)),
    "volumeBusy": Example(stories.volume_held, (without(k.VOLUME_BUSY),)),
    "claimHeldByPod": Example(stories.claim_held, (without(k.CLAIM_HELD),)),
    "networkTeardownFailed": Example(stories.network_stays, (edit(k.NETWORK_DETACHED, error=""),)),
    "graceShortened": Example(shortened, (edit(k.GRACE_SHORTENED, at=-0.1),)),
    # the Pod
    "heldByFinalizers": Example(held_by_finalizers, (add(0.2, "client", k.POD_GONE_SEEN, ""),)),
    "nodePressure": Example(evicted, (ruled(k.DELETION_DECIDED, stories.SHUTDOWN),)),
    "nodeShutdown": Example(
        lambda tape: stories.shut_down(tape, 2, 30, killed=True),
        (
            ruled(k.DELETION_DECIDED, "pkg/kubelet/preemption/preemption.go:evictPodsToFreeRequests"),
            edit(k.DELETION_DECIDED, gracePeriodSeconds=30),
        ),
    ),
    "nodeUnreachable": Example(lambda tape: stories.lost(tape, seen=False), (lambda tape: tape.observed(30),)),
    "nodeLifecycle": Example(stories.drained, (edit(k.NODE_STATE_SEEN, lifecycle=[]),)),
    "sidecarHoldsJob": Example(
        lambda tape: stories.job(tape, "Job", 0), (edit(k.PROCESS_EXITED, exitCode=1),), container="work"
    ),
    "goneBeforeContainers": Example(gone_before_its_containers, (without(k.POD_GONE_SEEN),)),
    # the runs of a container
    "livenessProbeKilled": Example(restarted_by("liveness"), (without(k.KILLING),)),
    "startupProbeKilled": Example(restarted_by("startup"), (without(k.KILLING),)),
    "initContainerFailed": Example(init_fails, (edit(k.PROCESS_EXITED, exitCode=0),), container="wait"),
    "commandNotStarted": Example(
        refused_by_the_kernel, (along(edit(k.PROCESS_EXITED, exitCode=0)), edit(k.OUTPUT, text="FATAL"))
    ),
    "mountHidesFile": Example(
        reads_a_directory, (along(edit(k.PROCESS_EXITED, exitCode=0)), edit(k.OUTPUT, text="FATAL"))
    ),
    "crashed": Example(
        restarted_after(3),
        (edit(k.PROCESS_EXITED, exitCode=0),),
        (edit(k.OUTPUT, text="exec /app/run: exec format error"), reads_its_mount),
    ),
    "restartedPostStart": Example(restarted_by_its_hook, (without(k.KILLING),)),
    "restartedByRule": Example(restarted_by_its_rule, (edit(k.PROCESS_EXITED, exitCode=3),)),
    "endsAndIsRestarted:signalled": Example(
        says_that_a_signal_came,
        (along(edit(k.PROCESS_EXITED, exitCode=3)), edit(k.OUTPUT, text="done")),
    ),
    "endsAndIsRestarted": Example(
        restarted_after(0), (edit(k.PROCESS_EXITED, exitCode=3),), (edit(k.OUTPUT, text="received SIGINT"),)
    ),
    # exits
    "neverStarted": Example(never_started, (lambda tape: tape.started(),)),
    "sidecarHookEndsIt": Example(
        sidecar_ended_by_its_hook,
        (
            along(known_by_its_object(exit_code=0)),
            edit(k.PROCESS_EXITED, exitCode=137, signal=9),
            add(0.015, "runtime", k.SIGNAL_SENT, signal="SIGTERM", pid=7, containerPid=1, why="StopContainer"),
            edit(k.PRE_STOP_FINISHED, outcome="failed"),
        ),
    ),
    "endedByItself": Example(
        ended_by_itself,
        (
            known_by_its_object(exit_code=0),
            edit(k.PROCESS_EXITED, exitCode=137, signal=9),
            add(0.1, "runtime", k.SIGNAL_SENT, signal="SIGTERM", pid=7, containerPid=1, why="StopContainer"),
        ),
        (edit(k.PROCESS_EXITED, at=-0.5, exitCode=1), completed_by_itself, is_a_sidecar_with_a_hook),
    ),
    "sidecarEndsFirst": Example(
        missed_another_container,
        (
            unsent("SIGTERM"),
            edit_of("app", k.PROCESS_EXITED, exitCode=137, signal=9),
            edit_of("app", k.PROCESS_EXITED, exitCode=0),
            kind_of("app", "sidecar"),
            edit(k.OUTPUT, text="bye"),
        ),
    ),
    "sidecarEndsFirst:wentOn": Example(
        went_on_without_another_container,
        (
            unsent("SIGTERM"),
            edit_of("app", k.PROCESS_EXITED, signal=9),
            edit_of("app", k.PROCESS_EXITED, exitCode=1),
            kind_of("app", "sidecar"),
            edit(k.OUTPUT, text="bye"),
        ),
    ),
    "jobCountsAsDone": Example(
        ends_with_0_in_a_job,
        (
            NO_SIGTERM,
            edit(k.PROCESS_EXITED, signal=9),
            edit(k.PROCESS_EXITED, exitCode=1),
            of_kind("sidecar"),
            edit(k.DELETION_DECIDED, ownerKind="ReplicaSet"),
        ),
        (edit(k.PROCESS_EXITED, at=-0.5), another_had_ended, shown("default"), another_fails),
    ),
    "exitCodeNotZero": Example(
        fails_on_its_signal,
        (
            NO_SIGTERM,
            edit(k.PROCESS_EXITED, exitCode=0),
            edit(k.PROCESS_EXITED, exitCode=137, signal=9),
            of_kind("sidecar"),
        ),
        (edit(k.PROCESS_EXITED, at=-0.5), shown("default")),
    ),
    "exitCodeNotZero:sidecar": Example(
        sidecar_fails_on_its_signal,
        (
            NO_SIGTERM,
            edit(k.PROCESS_EXITED, exitCode=0),
            edit(k.PROCESS_EXITED, exitCode=143, signal=15),
            of_kind("container"),
        ),
        (edit(k.PROCESS_EXITED, at=-0.5), shown("default")),
    ),
    # hooks
    "hookNotRun": Example(hook_skipped, (without(k.PRE_STOP_SKIPPED),)),
    "hookDiedWithContainer": Example(ended_with_its_hook, (edit(k.PROCESS_EXITED, at=3.0),)),
    "waitsFor": Example(hook_runs, (add(3.0, "kubelet", k.PRE_STOP_FINISHED, handler="exec", outcome="succeeded"),)),
    "hookFailed": Example(
        hook_ends("failed"),
        (edit(k.PRE_STOP_FINISHED, outcome="succeeded"),),
        (edit(k.PRE_STOP_FINISHED, stderr="sh: can't kill pid 1: Operation not permitted"),),
    ),
    "hookSignalRefused": Example(hook_may_not_signal, (edit(k.PRE_STOP_FINISHED, stderr="no such process"),)),
    "hookOutlived": Example(hook_ends("outlived"), (edit(k.PRE_STOP_FINISHED, outcome="succeeded"),)),
    "hookTimeNotCounted": Example(
        hook_is_not_counted,
        (edit(k.PRE_STOP_FINISHED, seconds=0.5),),
        (edit(k.STOP_REQUESTED, deductedSeconds=2),),
    ),
    "postStartFailed": Example(post_start("failed"), (edit(k.POST_START_FINISHED, outcome="succeeded"),)),
    "postStartRuns": Example(post_start(""), (post_start_ends(-0.5),)),
    "postStartHeld": Example(post_start_held, (edit(k.POST_START_FINISHED, at=0.05),)),
    # its readinessProbe
    "probeFailed:otherPort": Example(asks_port(8081, "0.0.0.0"), (probe_succeeds,)),
    "probeFailed:loopback": Example(asks_port(8080, "127.0.0.1"), (edit(k.PROBE_FAILING, listeners=[]),)),
    # the stop signal
    "stopSignalNotHandled:starting": Example(
        barely_begun, (along(NO_SIGTERM), edit(k.PROCESS_STARTED, at=-2.0)), (edit(k.PROCESS_EXITED, at=0.5),)
    ),
    "stopSignalNotHandled": Example(
        stories.no_handler,
        (NO_SIGTERM, shown("handled")),
        (
            both(unsent("SIGKILL"), edit(k.PROCESS_EXITED, at=0.5, exitCode=0, signal=None)),
            both(
                unsent("SIGKILL"),
                edit(k.PROCESS_EXITED, at=4.0, exitCode=0, signal=None),
                edit(k.PROCESS_STARTED, at=-0.08),
            ),
        ),
    ),
    "shellRunsTrapLate": Example(
        trap_runs_late, (NO_SIGTERM, shown("default"), program("/bin/web", "web"), edit(k.OUTPUT, at=0.008))
    ),
    "shellRunsTrapLate:waits": Example(
        stories.shell_whose_trap_waits,
        (NO_SIGTERM, processes(afterSignal=True)),
    ),
    "reloadsOnSignal": Example(
        lambda tape: stories.reloads(tape, after_signal=True, listeners=True),
        (
            edit(k.PROCESS_EXITED, exitCode=0, signal=None),
            shown("default"),
            processes(afterSignal=False),
            edit(k.SOCKETS_AT_EXIT, listeners=[]),
        ),
    ),
    # the other processes
    "childKilledInside": Example(
        killed_by_its_master,
        (NO_SIGTERM, edit(k.CHILD_ENDED, exitCode=0, signal=None)),
        (edit(k.PROCESS_EXITED, oomKills=1),),
    ),
    "childIgnoresSignal": Example(
        stories.tini_whose_child_ignores_it,
        (
            NO_SIGTERM,
            program("/bin/web", "web"),
            along(NEWER),
            processes("app", disposition="handled"),
            edit(k.PROCESSES_LEFT, when="exit"),
        ),
    ),
    "childIgnoresSignal:waits": Example(
        stories.waits_for_a_child_that_ignores_it,
        (
            NO_SIGTERM,
            shown("default"),
            program("/bin/sh", "sh"),
            processes("app", disposition="default"),
            edit(k.PROCESSES_LEFT, when="exit"),
        ),
        (TINI,),
    ),
    "childrenNotSignalled:init": Example(
        stories.tini_whose_child_ignores_it,
        (NO_SIGTERM, program("/bin/web", "web"), along(NEWER), processes("sleep", child=True)),
        (below_a_shell,),
    ),
    "childrenNotSignalled:shell": Example(
        stories.children_below_a_shell_outlive_the_grace_period,
        (NO_SIGTERM, program("/bin/busybox", "sh"), without(k.PROCESSES_AT_STOP)),
        (processes(disposition="ignored"),),
    ),
    "signalEndsPool": Example(
        stories.dumb_init_ends_a_pool,
        (NO_SIGTERM, edit(k.CHILD_ENDED, signal=None)),
    ),
    "shellKeepsSignal:left": Example(
        stories.shell_with_script,
        (NO_SIGTERM, along(program("/bin/web", "web")), NEWER, shown("default")),
        (TINI, processes(name="sleep")),
    ),
    "shellKeepsSignal": Example(
        stories.shell_with_child,
        (NO_SIGTERM, program("/bin/web", "web"), NEWER),
        (
            TINI,
            both(shown("handled"), edit(k.PROCESSES_LEFT, when="exit")),
            both(
                shown("handled"),
                program("/bin/busybox", "sh", "-c", "while true; do sleep 1 & wait; done"),
                edit(k.PROCESSES_LEFT, when="exit"),
                unsent("SIGKILL"),
                edit(k.PROCESS_EXITED, at=0.5, exitCode=0, signal=None),
            ),
            both(shown("handled"), program("/bin/busybox", "sh", "/job.sh")),
            both(shown("handled"), program("/bin/busybox", "sh", "/job.sh"), add(1.0, "runtime", k.OUTPUT, text="x")),
            both(
                edit(k.PROCESSES_LEFT, when="exit"),
                unsent("SIGKILL"),
                edit(k.PROCESS_EXITED, at=0.5, exitCode=143, signal=15),
            ),
        ),
    ),
    "shellKeepsSignal:trap": Example(
        stories.shell_whose_trap_sends_another_signal,
        (NO_SIGTERM, NEWER, shown("default")),
        (TINI,),
    ),
    "childrenNotSignalled": Example(
        stories.supervisor_with_children,
        (NO_SIGTERM, program("/bin/busybox", "sh"), both(NEWER, edit(k.PROCESSES_LEFT, more=0))),
        (
            TINI,
            both(processes(disposition="ignored"), edit(k.PROCESSES_LEFT, more=0)),
            both(processes(disposition="handled"), edit(k.PROCESSES_LEFT, more=0)),
            below_a_shell,
        ),
    ),
    "childrenNotSignalled:handles": Example(
        stories.children_that_handle_it_outlive_the_grace_period,
        (NO_SIGTERM, program("/bin/busybox", "sh"), shown("default"), processes(disposition="default")),
        (TINI, below_a_shell, stories.another_ended_before),
    ),
    "zombies": Example(stories.with_zombies, (edit(k.PROCESSES_LEFT, zombies=0),), (TINI,)),
    # 137
    "killedByOther": Example(
        killed_by_another,
        (
            along(edit(k.PROCESS_EXITED, signal=None)),
            add(0.4, "runtime", k.SIGNAL_SENT, signal="SIGKILL", pid=7, containerPid=1, why="grace over"),
        ),
        (BY_PROBE, along(OUT_OF_MEMORY)),
    ),
    "pauseEnded": Example(
        pause_was_told_to_end,
        (along(edit(k.PROCESS_EXITED, signal=None)), without(k.PAUSE_ENDED)),
        (both(BY_PROBE, edit(k.PAUSE_ENDED, at=-0.499)), along(OUT_OF_MEMORY)),
    ),
    "deadlocked": Example(
        stories.deadlocked,
        (NO_SIGTERM, edit(k.PROCESS_EXITED, signal=None), shown("ignored"), without(k.WAITS_AT_KILL)),
    ),
    "killed": Example(
        stories.takes_too_long,
        (along(edit(k.PROCESS_EXITED, signal=None)), unsent("SIGKILL")),
        (BY_PROBE, along(OUT_OF_MEMORY), lambda tape: stories.master_of_three(tape, 4.05)),
    ),
    "killed:inTurn": Example(
        stories.stops_in_turn,
        (
            along(edit(k.PROCESS_EXITED, signal=None)),
            unsent("SIGKILL"),
            shown("default"),
            without(k.CHILD_ENDED),
        ),
        (BY_PROBE, along(OUT_OF_MEMORY), holds_connections),
    ),
    "killed:other": Example(
        removed,
        (edit(k.PROCESS_EXITED, signal=None),),
        (
            BY_PROBE,
            OUT_OF_MEMORY,
            unsent("SIGKILL"),
            both(unsent("SIGKILL"), add(0.501, "runtime", k.PAUSE_ENDED, exitCode=0, signal="")),
            add(0.45, "runtime", k.SIGNAL_SENT, signal="SIGKILL", pid=7, containerPid=1, why="grace over"),
        ),
    ),
    "outOfMemory": Example(stories.memory_limit, (edit(k.PROCESS_EXITED, oomKilled=False),)),
    "childOutOfMemory": Example(
        stories.child_out_of_memory,
        (edit(k.PROCESS_EXITED, oomKills=0),),
        (edit(k.PROCESS_EXITED, exitCode=137, signal=9),),
    ),
    "exitCode137OfItsOwn": Example(
        stories.own_137,
        (
            known_by_its_object(exit_code=137, reason="Completed"),
            along(edit(k.PROCESS_EXITED, signal=9)),
            edit(k.PROCESS_EXITED, exitCode=1),
        ),
    ),
    # sockets
    "sidecarHoldsConnection": Example(
        stories.waits_for_its_sidecar,
        (along(NO_SIGTERM), shown("default"), edit(k.SOCKETS_AT_EXIT, connections=0)),
    ),
    "connectionsOpenAtKill": Example(
        stories.waits_for_connections,
        (
            edit(k.PROCESS_EXITED, exitCode=0, signal=None),
            shown("default"),
            edit(k.SOCKETS_AT_EXIT, connections=0),
        ),
        (stories.held_by_a_sidecar,),
    ),
    "listenerClosedBeforeEndpoint": Example(
        stories.port_closed_before_endpoint, (without(k.ENDPOINT_CHANGED), edit(k.ENDPOINT_CHANGED, at=0.004))
    ),
    "listenerClosedSoon": Example(
        stories.port_closed_soon,
        (along(without(k.ENDPOINT_CHANGED)), edit(k.LISTENER_CLOSED, seconds=2.0)),
        (lambda tape: tape.hook(0.001, 0.001),),
    ),
    "hookClosesListener": Example(
        stories.hook_closes_port, (without(k.ENDPOINT_CHANGED), edit(k.LISTENER_CLOSED_IN_HOOK, at=2.0))
    ),
    "backlogNeverAccepted": Example(
        stories.requests_cut, (known_by_its_object(exit_code=0), edit(k.SOCKETS_AT_EXIT, backlog=0))
    ),
    "connectionsCut": Example(
        stories.connections_ended_well, (known_by_its_object(exit_code=0), edit(k.SOCKETS_AT_EXIT, connections=0))
    ),
}
