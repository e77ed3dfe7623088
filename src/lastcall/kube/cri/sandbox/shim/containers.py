"""Start, signal and report containers."""

# check: allow time.time_ns, time.sleep because the shim has a loop of its own
# check: observes because it sees processes by /proc, signals and wait statuses
# check: many attributes Container because it is all that the shim knows of a container, in one thread

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time

from lastcall.kube.cri.sandbox.shim import child, dispositions, identity, procfs
from lastcall.kube.cri.sandbox.shim.limits import Limits, MachineKills
from lastcall.kube.cri.sandbox.shim.listening import listeners_of_container, listeners_of_pod
from lastcall.kube.cri.sandbox.shim.logs import LINES_PER_SECOND, LogFile, Stream
from lastcall.kube.cri.sandbox.shim.loop import Loop, Timer
from lastcall.kube.cri.sandbox.shim.namespaces import Own, Sandbox, clone_into
from lastcall.kube.cri.sandbox.shim.pod_groups import NodeSize
from lastcall.kube.cri.sandbox.shim.process import Exit, Journal, Output, Process, Stdio, launch
from lastcall.kube.cri.sandbox.shim.single_id import filters
from lastcall.kube.cri.sandbox.shim.single_id.supervisor import Supervisor
from lastcall.kube.cri.sandbox.shim.streams.taps import Taps
from lastcall.kube.cri.sandbox.shim.witness import Watched, Witness
from lastcall.records import kinds
from lastcall.world import crash_guard, linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Protocol

    from lastcall.kube.cri.sandbox.cgroups.api import Cgroups
    from lastcall.records.definitions.parts import Listener as FoundListener
    from lastcall.records.record import Evidence
    from lastcall.records.ring import RingRecorder

    class Listener(Protocol):
        """What a container reports about itself, and asks of its neighbours."""

        def started(self, container: Container) -> None: ...
        def start_failed(self, container: Container, text: str) -> None: ...
        def changed(self, container: Container) -> None:
            """Report that the container's `info` has changed."""

        def log_full(self, container: Container) -> None: ...
        def exited(self, container: Container) -> None: ...
        def alone(self, container: Container) -> bool:
            """Return whether no other container of its Pod runs."""

        def beside(self, container: Container) -> list[Container]:
            """Return the other containers of its Pod that run."""

    from lastcall.records.definitions.parts import PodListener
    from lastcall.records.definitions.runtime import (
        OutOfMemory,
        PrivilegeCallAnswered,
        ProcessExited,
        ProcessStarted,
        SignalSent,
    )
    from lastcall.records.definitions.runtime import Output as PrintedLine
    from lastcall.records.record import Facts, Kind


KILL_ROUNDS = 5
"""How often to look for processes that came while others were killed."""
_LONGEST_HOLD_SECONDS = 5.0
"""How long a container waits for its log to be rotated; after that its log loses lines, and it goes on."""

# Keys of `ContainerStatus.info`: `kube/cri/api.py` has them for the node.
SINGLE_USER_ID = "lastcall.dev/single-user-id"
MISSING_GROUPS = "lastcall.dev/missing-groups"


class Context:
    """What every process of this shim shares."""

    def __init__(
        self,
        loop: Loop,
        recorder: RingRecorder,
        directory: str,
        cgroups: Cgroups,
        lines_per_second: int = LINES_PER_SECOND,
        size: NodeSize | None = None,
        owners_fd: int = -1,
    ) -> None:
        """`lines_per_second` of each stream of output go to the timeline. `size` None: the machine's. `owners_fd` is
        the way to front, where it mounts the host's disk for the ids of Pods (`idmap.py`), else -1."""
        self.loop = loop
        self.recorder = recorder
        self.directory = directory
        self.cgroups = cgroups
        self.lines_per_second = lines_per_second
        self.size = size or NodeSize({})
        self.owners_fd = owners_fd
        self.machine_kills = MachineKills()
        self.own = Own()
        self.maps = procfs.id_map("/proc/self/uid_map"), procfs.id_map("/proc/self/gid_map")


class Container:
    """One container from its start on; `exit` is set when it has ended."""

    def __init__(self, context: Context, spec: dict[str, Any], sandbox: Sandbox, listener: Listener) -> None:
        self.id: str = spec["id"]
        self.spec = spec
        self.sandbox = sandbox
        self.maps = context.maps if sandbox.users is None else sandbox.users.maps
        self.process: Process | None = None
        self.limits = Limits(context.cgroups, spec)
        self.info: dict[str, str] = {}
        """What CRI has no field for: see `kube/cri/api.py:ContainerStatus`."""
        self._hold_timer: Timer | None = None
        self._supervisors: list[Supervisor] = []
        self.out_of_memory: bool | None = None
        self.started_at = 0
        self.finished_at = 0
        self.failure = ""
        """Why it could not be started."""
        self.stop_signal_sent = False
        self._listener = listener
        self._context = context
        self._outputs: list[Output] = []
        self._unread: list[tuple[str, int]] = []
        self._log = LogFile("")
        self._stdin = -1
        self.terminal = -1
        self.taps = Taps(context.loop)
        self._mount_namespace = -1
        self._sigkill_sent = False
        self._witness: Witness | None = None
        self.execs: set[str] = set()
        """Ids of the execs that run in it."""

    @property
    def about(self) -> dict[str, str]:
        """Return whose processes these are, for the journals."""
        return {"podUid": self.spec["podUid"], "container": self.spec["name"]}

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.executed and self.process.exit is None

    @property
    def over(self) -> bool:
        """Return whether it is neither running nor about to."""
        return self.process is None or self.process.exit is not None

    def start(self, pid_target: int) -> None:
        """Clone and let go; the listener gets `started` or `start_failed`. Raises OSError.

        `pid_target`: pidfd whose PID namespace to join.
        """
        spec, context = self.spec, self._context
        flags = linux.CLONE_NEWNS
        if spec["pid"] == "CONTAINER":
            flags |= linux.CLONE_NEWPID

        def in_child(status: socket.socket, stdio: Stdio) -> NoReturn:
            groups = {
                "cgroupFiles": entrance.files,
                "cgroupView": self.limits.view(privileged=spec["privileged"]),
                "limited": context.cgroups.mode != "none",
                "ownersFd": context.owners_fd,
            }
            more = {"shm": self.sandbox.shm, "helper": filters.helper(self.maps[0]), "users": self.sandbox.users}
            child.run_container({**spec, **groups, **more}, status, stdio, self.sandbox.namespaces, self.maps)

        filters.prepare(spec, self.maps[0])
        # Before its groups: the next shim takes away the groups of every container that has a journal.
        journal = Journal(context.directory, self.id, {**self.about, "sandboxId": self.sandbox.id})
        try:
            self.limits.start()
            entrance = self.limits.entrance()
            self._log = LogFile(spec["logPath"], spec.get("logMax", 0))
            self._log.on_full = lambda: self._listener.log_full(self)
            self._log.on_hold = self._hold
            launched = launch(
                context.loop,
                journal,
                lambda: clone_into(pid_target, flags, context.own, entrance.directory),
                in_child,
                stdin=spec["stdin"] and not spec["tty"],
            )
        except OSError:
            self._log.close()
            self.limits.remove()
            journal.remove()
            raise
        self.process = launched.process
        self.process.on_started = self._started
        self.process.on_start_failed = self._start_failed
        self.process.on_exited = self._exited
        self.process.on_console = self._console
        self.process.on_listener = self.supervise
        self._stdin = launched.stdin
        self._unread = [("stdout", launched.stdout), ("stderr", launched.stderr)]
        if spec["tty"]:  # its only output is the terminal
            for _, fd in self._unread:
                os.close(fd)
            self._unread = []
        self.process.go()

    def _follow_output(self) -> None:
        """Not before the start is on record: what a process prints comes after that."""
        for name, fd in self._unread:
            stream = Stream(name, self._log, self._line, self._context.lines_per_second)
            self._outputs.append(self.taps.follow(name, fd, stream.feed, stream.end))
        self._unread = []

    def reopen_log(self) -> None:
        """Reopen the log in a new file: it was renamed. Raises OSError."""
        self._log.reopen()

    def _hold(self, held: bool) -> None:
        """The log is twice as big as it may be, and nobody has rotated it yet."""
        if self._hold_timer is not None:
            self._hold_timer.cancel()
            self._hold_timer = None
        self.taps.hold(held)
        if held:
            self._hold_timer = self._context.loop.call_later(_LONGEST_HOLD_SECONDS, self._lose_lines)

    def _lose_lines(self) -> None:
        self._log.lossy = True
        self.taps.hold(False)

    def _console(self, fd: int) -> None:
        """The terminal's end: its output is the container's, and held open it is also its input."""
        self._unread.append(("stdout", fd))
        self.terminal = os.dup(fd)  # outlives the output, which may end first

    def supervise(self, listener: int) -> None:
        """Answer for a process of the container that runs as root with the cluster's only user id."""
        gid = self.spec["user"]["gid"]
        map_ids = gid is None or identity.mapped(gid, self._context.maps[1])
        self._supervisors = [each for each in self._supervisors if not each.closed]
        self._supervisors.append(Supervisor(self._context.loop, listener, map_ids, self._answered))

    def _answered(self, call: str, asked: int | None) -> None:
        calls = self.info.get(SINGLE_USER_ID, "").split()
        if call not in calls:
            facts: PrivilegeCallAnswered = {"containerId": self.id, "call": call, "id": asked}
            self.record(kinds.PRIVILEGE_CALL_ANSWERED, facts)
            self.info[SINGLE_USER_ID] = " ".join([*calls, call])
            self._listener.changed(self)

    def _line(self, stream: str, text: str, dropped: int) -> None:
        facts: PrintedLine = {
            "stream": "stderr" if stream == "stderr" else "stdout",
            "text": text,
            "attempt": self.spec["attempt"],
        }
        if dropped:
            facts["dropped"] = dropped
        self.record(kinds.OUTPUT, facts)

    def record(self, kind: Kind[Facts], facts: Facts, evidence: Evidence = "observed") -> None:
        uid, name = self.spec["podUid"], self.spec["name"]
        self._context.recorder.record(kind, pod_uid=uid, container=name, facts=facts, evidence=evidence)

    def _started(self) -> None:
        assert self.process is not None
        self.started_at = time.time_ns()
        with crash_guard.Turn(
            "shim", f"start of container {self.id}"
        ):  # reported, whatever goes wrong with what is noted of it
            self._note_start(self.process)
        self._listener.started(self)

    def _note_start(self, process: Process) -> None:
        if self.spec["pid"] != "CONTAINER":
            # Held open: else its number would be that of the next container that starts when this one has ended.
            self._mount_namespace = procfs.open_mount_namespace(process.pid)
        # A process that has ended already has no exe link any more.
        exe = procfs.executable(process.pid) or process.program
        facts: ProcessStarted = {
            "containerId": self.id,
            "pid": process.pid,
            "containerPid": self._number_of(process),
            "exe": exe,
            "argv": self.spec["argv"],
            **process.ids,
            "seccomp": (self.spec.get("seccomp") or {}).get("name", "Unconfined"),
        }
        self.record(kinds.PROCESS_STARTED, facts)
        missing = identity.missing_groups(self.spec["user"], self.maps)
        if missing:
            self.info[MISSING_GROUPS] = " ".join(map(str, missing))
        self._follow_output()

    def _number_of(self, process: Process) -> int:
        """Return the number of a process that is not reaped in the container's PID namespace."""
        return 1 if self.spec["pid"] == "CONTAINER" else dispositions.container_pid(process.pid)

    def _start_failed(self, message: str) -> None:
        self._end()
        self.failure = message
        self._listener.start_failed(self, message)

    def _exited(self, status: Exit) -> None:
        assert self.process is not None
        self.finished_at = self.process.finished_at
        with crash_guard.Turn(
            "shim", f"exit of container {self.id}"
        ):  # reported, whatever goes wrong with what is noted of it
            self._note_exit(self.process, status)
        self._listener.exited(self)  # on record and its log whole: those that wait need not wait for the rest
        self._end()
        if self._witness is not None:
            self._witness.after_exit(killed=status.signal == "SIGKILL")

    def _note_exit(self, process: Process, status: Exit) -> None:
        if self.spec["pid"] != "CONTAINER":
            self._kill_the_rest()
            self.limits.kill()
            if self._mount_namespace >= 0:
                os.close(self._mount_namespace)
                self._mount_namespace = -1
        # None: nobody counts out-of-memory kills without a cgroup of the container's own.
        kills = self.limits.oom_kills()
        self.out_of_memory = None if kills is None else kills > 0
        for output in self._outputs:
            output.drain()
        facts: ProcessExited = {
            "containerId": self.id,
            "pid": process.pid,
            "exitCode": status.code,
            "signal": status.signal or None,
            "oomKilled": self.out_of_memory,
            "oomKills": kills,
            "memoryLimit": self.limits.memory,
        }
        if self.out_of_memory:
            facts["peakRss"] = status.peak_rss
            facts["endedTogether"] = self.limits.ended_together()
            facts["limitReached"] = self.limits.reached()
            facts["filesInMemory"] = self.limits.files()
        if process.not_executed is not None:
            facts["notExecuted"] = process.not_executed
        elif status.code and not self.stop_signal_sent and not self._sigkill_sent:
            with contextlib.suppress(OSError):
                if (found := self._listeners_of_its_pod()) is not None:
                    facts["podListeners"] = found
            if self._network is not None and (resets := self.sandbox.resets.since_last(self._network)) is not None:
                facts["podResets"] = resets
        self.record(kinds.PROCESS_EXITED, facts)
        if self.out_of_memory is None and status.signal == "SIGKILL" and not self._sigkill_sent:
            self._infer_out_of_memory()
        self._end_output()

    def _listeners_of_its_pod(self) -> list[PodListener] | None:
        """Return who listens in the Pod when a container of it has crashed; None where nobody can tell."""
        beside = [(c.process.pid, str(c.spec["name"])) for c in self._listener.beside(self) if c.process is not None]
        return listeners_of_pod(self._network, beside) if self._network is not None else None

    def _infer_out_of_memory(self) -> None:
        kills = self._context.machine_kills.since_last()
        if kills and self.process is not None:
            facts: OutOfMemory = {"containerId": self.id, "pid": self.process.pid, "machineKills": kills}
            self.record(kinds.OUT_OF_MEMORY, facts, "inferred")

    def _end_output(self) -> None:
        """Close the pipes: a process outside its PID namespace that holds them writes into nothing."""
        for output in self._outputs:
            output.drain()
            output.close()
        for _, fd in self._unread:
            os.close(fd)
        self._unread = []
        self._log.close()

    def _end(self) -> None:
        """Everything of the process is gone."""
        assert self.process is not None
        self._end_output()
        self.process.journal.close()
        if self._hold_timer is not None:
            self._hold_timer.cancel()
        for supervisor in self._supervisors:
            supervisor.close()
        self.limits.remove()
        self.close_stdin()
        if self.terminal >= 0:
            os.close(self.terminal)
            self.terminal = -1

    @property
    def stdin(self) -> int:
        """Return the end to write to, -1 if it is closed or there is none (a terminal is its own input)."""
        return self._stdin

    def close_stdin(self) -> None:
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1

    def _kill_the_rest(self) -> None:
        """Without a PID namespace of its own the container is whatever lives in its mount namespace."""
        for _ in range(KILL_ROUNDS):
            left = procfs.in_mount_namespace(self._mount_namespace) if self._mount_namespace >= 0 else []
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)

    def send_signal(self, number: int, why: str) -> bool:
        """Signal PID 1, after a look at how it will meet it; return False if nothing is there to signal."""
        process = self.process
        if process is None or process.exit is not None:
            return False
        facts: SignalSent = {
            "signal": procfs.signal_name(number),
            "pid": process.pid,
            "containerPid": self._number_of(process),
            "why": why,
        }
        exiting = self.running and procfs.exiting(process.pid) and len(procfs.threads(process.pid)) <= 1
        witness = state = None
        if exiting:  # the others of its PID namespace end first: a hook that waited for it, too
            facts["exiting"] = True
        elif self.running:
            # The container's programs decide what a look meets: it must not keep the signal from them.
            with crash_guard.Turn("shim", f"look before {facts['signal']}"):
                witness = self._watch(process, number)
                if number != signal.SIGKILL:
                    state = dispositions.signal_state(process.pid, number)
                elif witness is not None:
                    facts["oomKills"] = self.limits.oom_kills()
                    facts["stopSignalPending"] = witness.stop_signal_pending()
                    witness.before_kill()
        sent = process.signal(number)
        if number == signal.SIGKILL:
            self.limits.thaw()
        if state is not None:  # as it was before the signal, written down when that is on its way
            self.record(kinds.PROCESS_SIGNAL_STATE, state)
        if not sent:
            return False
        # A node that starts anew must know: the stop signal is sent once in a container's life.
        self.stop_signal_sent = self.stop_signal_sent or number != signal.SIGKILL
        self._sigkill_sent = self._sigkill_sent or number == signal.SIGKILL
        self.record(kinds.SIGNAL_SENT, facts)
        if witness is not None and number != signal.SIGKILL:
            with crash_guard.Turn("shim", f"look after {facts['signal']}"):
                witness.after_signal()
        return True

    def _watch(self, process: Process, number: int) -> Witness | None:
        """Look at the end from the first signal on; the witness when this is the first, or SIGKILL."""
        if self._witness is None:
            watched = Watched(
                self._context.loop, process.pid, self._network, lambda: self._listener.alone(self), self.record
            )
            self._witness = Witness(watched)
            self._witness.before_signal(number)
            return self._witness
        return self._witness if number == signal.SIGKILL else None

    @property
    def _network(self) -> tuple[int, int] | None:
        """The Pod's network namespace and the shim's own; None in the node's."""
        theirs = self.sandbox.namespaces.get(linux.CLONE_NEWNET)
        return None if theirs is None else (theirs, self._context.own.fds[linux.CLONE_NEWNET])

    def listeners(self) -> list[FoundListener] | None:
        """Return who of this container listens now; None when nobody can look."""
        if self.process is None or not self.running or self._network is None:
            return None
        return listeners_of_container(self._network, self.process.pid, lambda: self._listener.alone(self))

    def forget(self) -> None:
        """Remove what is on record of it and no longer needed."""
        self.limits.remove()
        if self.process is not None:
            self.process.journal.remove()
