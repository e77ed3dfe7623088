"""What the runtime (the shim and what drives it) sees of processes and networks."""

from typing import Annotated, Literal, NotRequired, TypedDict

from lastcall.records import rules
from lastcall.records.definitions.parts import Bytes, Disposition, Ids, NotExecuted, PodListener, PodResets, Seconds
from lastcall.records.said import joined, str_of, tell
from lastcall.records.sentences import DETAIL, NOISE, STEP, Style, Words, fixed, row, sentences, took
from lastcall.records.signal_names import signal_name
from lastcall.records.text import seconds

ACTOR = "runtime"


class ProcessStarted(Ids):
    """A container's PID 1 runs."""

    containerId: str
    pid: NotRequired[Annotated[int, "on the node; missing where it was concluded from the container's status"]]
    containerPid: NotRequired[Annotated[int, "in its PID namespace, as `kubectl exec` shows it"]]
    exe: Annotated[str | None, "the program's file"]
    argv: list[str]
    seccomp: NotRequired[Annotated[str, "the filter's name"]]


def process_started(facts: ProcessStarted) -> Words:
    if facts.get("pid") is None:
        return Words(tell("process started"), DETAIL)
    who = _who(facts.get("containerPid"), facts.get("pid"))
    return Words(tell("process started: $who, $exe", who=who, exe=facts.get("exe") or "?"), DETAIL)


def _who(container_pid: int | None, pid: int | None) -> str:
    """Return a process by its number in the container, as `kubectl exec` shows it; else by the node's, and say so."""
    if container_pid:
        return tell("PID $pid", pid=container_pid)
    return tell("pid $pid of the node", pid=pid)


class PrivilegeCallAnswered(TypedDict):
    """A call was answered with success without being done, because the cluster has one user id; the first of each
    call."""

    containerId: str
    call: Annotated[str, "chown, setuid …"]
    id: Annotated[int | None, "who it asked to be"]


class ProcessSignalState(TypedDict):
    """How PID 1 meets the stop signal, read from /proc right before it."""

    pid: int
    containerPid: Annotated[int, "in its PID namespace: only 1 is deaf to default"]
    name: NotRequired[str]
    exe: Annotated[str | None, "the program's file"]
    signal: str
    disposition: Disposition
    taken: NotRequired[Annotated[str, "how a handled one is: handler, sigwait or signalfd; else empty"]]
    caught: list[str]
    ignored: list[str]
    blocked: list[str]
    uid: NotRequired[Annotated[int, "its real user, in the container: kill(2) compares it"]]


def signal_state(facts: ProcessSignalState) -> Words:
    exe = f" ({facts['exe']})" if facts.get("exe") else ""
    number, signal = facts.get("containerPid", 1), signal_name(facts.get("signal"))
    disposition, taken = facts.get("disposition"), str(facts.get("taken"))
    if disposition == "handled":
        how = {
            "sigwait": tell("is waited for"),
            "signalfd": tell("is read from a signalfd"),
        }.get(taken) or tell("is handled")  # fmt: skip
    elif disposition == "ignored":
        how = tell("is ignored")
    elif disposition == "blocked":
        how = tell("is blocked")
    elif disposition != "default":
        how = tell("in an unknown state")
    else:
        deaf = number == 1
        how = tell("has no handler: PID 1 does not get it") if deaf else tell("has no handler: it ends the process")
        text = tell("PID $number$exe: $signal $how", number=number, exe=exe, signal=signal, how=how)
        return Words(text, STEP, "bad" if deaf else "")
    style: Style = "" if disposition == "handled" else "bad"
    return Words(tell("PID $number$exe: $signal $how", number=number, exe=exe, signal=signal, how=how), STEP, style)


class OutOfMemory(TypedDict):
    """Without a control group: concluded from the machine's counter and a SIGKILL that nobody here sent."""

    containerId: str
    pid: int
    machineKills: int


class SignalSent(TypedDict):
    """A signal is on its way."""

    signal: str
    pid: NotRequired[Annotated[int, "on the node"]]
    containerPid: NotRequired[Annotated[int, "in its PID namespace, as `kubectl exec` shows it"]]
    why: Annotated[str, "StopContainer, grace over, StopPodSandbox, exec timeout, caller gone, the shim died …"]
    oomKills: NotRequired[
        Annotated[int | None, "for SIGKILL: out-of-memory kills in the container so far; null: nobody counts"]
    ]
    stopSignalPending: NotRequired[
        Annotated[bool | None, "for SIGKILL: the stop signal had not been taken by then; null: not known"]
    ]
    exiting: NotRequired[Annotated[bool, "its process had begun to end: the signal has no effect"]]


def signal_sent(facts: SignalSent) -> Words:
    name, why = signal_name(facts.get("signal")), str_of(facts.get("why"))
    number, pid = facts.get("containerPid"), facts.get("pid")
    who = _who(number, pid) if number or pid else tell("its PID 1")
    if why == "exec timeout":
        return Words(tell("$signal → exec, $who (exec timeout)", signal=name, who=who), DETAIL, "signal")
    if why == "caller gone":
        return Words(tell("$signal → exec, $who (caller gone)", signal=name, who=who), DETAIL, "signal")
    if why == "grace over":
        why = tell("grace over")
    elif why == "the shim died":
        why = tell("the shim died")
    if facts.get("exiting"):
        return Words(tell("$signal → $who, which was already ending", signal=name, who=who), DETAIL)
    style: Style = "bad" if name == "SIGKILL" else "signal"
    return Words(tell("$signal → $who ($why)", signal=name, who=who, why=why), STEP, style)


class ProcessExited(TypedDict):
    """A container's PID 1 has ended."""

    containerId: str
    pid: NotRequired[int]
    exitCode: int
    signal: Annotated[str | None, "that ended it"]
    oomKilled: bool | None
    oomKills: NotRequired[Annotated[int | None, "since the start; null: nobody counts"]]
    memoryLimit: NotRequired[Annotated[Bytes | None, "null without one"]]
    limitReached: NotRequired[
        Annotated[bool | None, "false: memory ran out in its Pod or its node; null: the kernel does not say"]
    ]
    peakRss: NotRequired[Annotated[Bytes, "of PID 1 or a child that it waited for; known where memory ran out"]]
    filesInMemory: NotRequired[
        Annotated[Bytes | None, "that counted as its memory and were there after its end; null: nobody counts"]
    ]
    endedTogether: NotRequired[Annotated[bool | None, "the kernel ended all of it at once; null: it does not say"]]
    notExecuted: NotRequired[Annotated[NotExecuted, "the kernel refused to execute the program: what its file is"]]
    podListeners: NotRequired[Annotated[list[PodListener], "of a crash: who listened in its Pod right after it"]]
    podResets: NotRequired[Annotated[PodResets, "of a crash: what tells who refused a connection"]]
    unexplained: NotRequired[Annotated[bool, "whether it had been asked to stop is not known"]]
    finishedAt: NotRequired[
        Annotated[str, "of the Pod's status, by the node's clock: the end was concluded from it, without a pid"]
    ]


def process_exited(facts: ProcessExited) -> Words:
    name, code = signal_name(facts.get("signal")), facts.get("exitCode")
    if not name:
        return Words(tell("exit $code", code=code), STEP, "good" if code == 0 else "bad")
    style: Style = "bad" if name == "SIGKILL" else "signal"
    if facts.get("oomKilled"):
        return Words(tell("ended by $signal, out of memory, exit code $code", signal=name, code=code), STEP, style)
    return Words(tell("ended by $signal, exit code $code", signal=name, code=code), STEP, style)


class ExecStarted(TypedDict):
    """An exec (of a hook, a probe or a user) runs."""

    execId: str
    pid: int
    argv: list[str]


class ExecExited(TypedDict):
    """An exec has ended."""

    execId: str
    pid: int
    exitCode: int
    signal: Annotated[str | None, "that ended it"]
    killedBecause: Annotated[str, "empty when it ended by itself"]


class Output(TypedDict):
    """A container has printed a line."""

    stream: Literal["stdout", "stderr"]
    text: str
    attempt: Annotated[int, "0 for the first run"]
    dropped: NotRequired[Annotated[int, "lines before this one that were too many to tell"]]


def output(facts: Output) -> Words:
    return Words(tell("│ $text", text=str(facts.get("text") or "").rstrip("\n")), STEP, "output")


class ImagePullProgress(TypedDict):
    """Another container runtime is pulling an image."""

    image: str
    seconds: Seconds
    bytes: Annotated[
        Bytes | None, "of the layers that this pull has begun to download; null: not known, or another pull goes on"
    ]
    total: Annotated[Bytes | None, "of those layers; null: as above"]


def image_pull_progress(facts: ImagePullProgress) -> Words:
    image, done, total = facts.get("image"), facts.get("bytes"), facts.get("total")
    if done is None or not total:
        return Words(tell("pulling $image for $time", image=image, time=seconds(facts.get("seconds", 0.0))), NOISE)
    text = tell("pulling $image: $done of $total MiB", image=image, done=_mebibytes(done), total=_mebibytes(total))
    return Words(text, NOISE)


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.1f}"


class PauseEnded(TypedDict):
    """The first process of a shared PID namespace has ended, and the kernel has killed every other one there."""

    exitCode: NotRequired[int]
    signal: NotRequired[Annotated[str, "that ended it; empty if it exited, as it does on SIGINT and SIGTERM"]]
    secondsBefore: NotRequired[
        Annotated[Seconds, "of another runtime, by the state of its sandbox: that was ready so long before this record"]
    ]


def pause_ended(facts: PauseEnded) -> Words:
    if "exitCode" not in facts:
        return Words(tell("the Pod's pause process ended, and every container with it"), STEP, "bad")
    how = facts.get("signal") or tell("exit $code", code=facts.get("exitCode"))
    return Words(tell("the Pod's pause process ended ($how), and every container with it", how=how), STEP, "bad")


class NetworkAttached(TypedDict):
    """The Pod has its network (CNI ADD)."""

    ip: str
    seconds: Seconds


class NetworkPoliciesApplied(TypedDict):
    """The kernel drops new connections of the Pod that these NetworkPolicies do not allow. Written at each change."""

    ingress: Annotated[list[str], "names of those about what it receives; empty: it receives everything"]
    egress: Annotated[list[str], "names of those about what it sends; empty: it sends everything"]


def network_policies_applied(facts: NetworkPoliciesApplied) -> Words:
    received, sent = ", ".join(facts.get("ingress") or ()), ", ".join(facts.get("egress") or ())
    text = joined(
        (
            tell("receives only what $policies allow", policies=received) if received else "",
            tell("sends only what $policies allow", policies=sent) if sent else "",
        ),
        "; ",
    )
    what = text or tell("receives and sends everything again")
    return Words(tell("NetworkPolicies: $what", what=what), STEP, "endpoint")


class NetworkDetached(TypedDict):
    """The Pod's network is taken down (CNI DEL), or cannot be."""

    ip: str
    seconds: Seconds
    error: Annotated[str, "empty when it succeeded"]


def network_detached(facts: NetworkDetached) -> Words:
    if facts.get("error"):
        return Words(tell("network teardown failed: $error", error=facts["error"]), STEP, "bad")
    return Words(tell("network $ip torn down$time", ip=facts.get("ip"), time=took(facts)))


SENTENCES = sentences(
    row(ProcessStarted, process_started),
    row(PrivilegeCallAnswered, fixed("$call to id $id answered with success, not done (one user id)", STEP)),
    row(ProcessSignalState, signal_state, rules.STOP_CONTAINER),
    row(OutOfMemory, fixed("the machine ran out of memory meanwhile: probably killed for that", STEP, "bad")),
    row(SignalSent, signal_sent, rules.STOP_CONTAINER, rules.CLEANUP_AFTER_DEAD_SHIM),
    row(ProcessExited, process_exited, rules.HANDLE_CONTAINER_EXIT, rules.CLEANUP_AFTER_DEAD_SHIM),
    row(ExecStarted, fixed("exec: pid $pid of the node", NOISE)),
    row(ExecExited, fixed("exec: exit $exitCode", NOISE), rules.CLEANUP_AFTER_DEAD_SHIM),
    row(Output, output),
    row(ImagePullProgress, image_pull_progress),
    row(PauseEnded, pause_ended, rules.HANDLE_SANDBOX_EXIT),
    row(NetworkAttached, fixed("network $ip set up", DETAIL), rules.RUN_POD_SANDBOX),
    row(NetworkPoliciesApplied, network_policies_applied),
    row(NetworkDetached, network_detached, rules.STOP_POD_SANDBOX),
)
"""The words for each kind."""
