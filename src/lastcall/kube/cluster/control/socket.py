"""The control socket of a staying cluster, and its client.

One JSON object a line. Front speaks first: `{"protocol": 1, "records": 1, "lastcall": …, "pid": …}`. Then a request
`{"verb": …}` and its answers, the last of which has `"end": true`, or `"error"` with a text:

- `status`: `{"status": {…}}` (staying/front.py says what is in it)
- `stop`: `{"stopping": true}`; the connection ends when the cluster does. Holds in every protocol version.
- `records`, optional `podUid` and `follow`: `{"record": {…}}` for each that front keeps; followed, new ones as they
  come
- `logs` with `role`, optional `follow`: `{"text": …}`, whole lines
- `publish` with `port`, as `up --publish` takes it: `{"address": "127.0.0.1:…"}`
- `add_node`, optional `node` (the next free name), `capacity` and `timeout`; `remove_node` with `node` and the options
  of a drain: `{"text": …}` for each step, and at last `{"node": …}` of the new one; the end comes when all is done. A
  change that can still be undone is, when the connection ends before
- `node` with `node` and `action`: `shutdown` (with `periods`, a list of [priority, seconds]) or `cancel`: `{"text": …}`
  for each step; the end comes when all is done

Only processes of the same user are answered (SO_PEERCRED), and a client talks to a front of its own user only.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from typing import Any, cast

from lastcall._version import __version__
from lastcall.kube.cluster.directory import DEFAULT_NAME, LOG, SOCKET, ClusterDirectory
from lastcall.kube.cluster.errors import AlreadyRunning, ControlError, NewerVersion, NotRunning
from lastcall.records.record import Record
from lastcall.world import wire
from lastcall.world.blocking import monotonic, sleep
from lastcall.world.messages import Message

Fields = dict[str, Any]


class Status(Message, verb="status"):
    pass


class Stop(Message, verb="stop"):
    pass


class Records(Message, verb="records"):
    pod_uid: str | None = None
    follow: bool = False


class Logs(Message, verb="logs"):
    role: str | None = None
    follow: bool = False


class Publish(Message, verb="publish"):
    port: str


class Node(Message, verb="node"):
    node: str
    action: str
    periods: list[Any] | None = None


class AddNode(Message, verb="add_node"):
    """`capacity` has quantities by resource; `timeout` seconds until the node has to be Ready."""

    node: str = ""
    capacity: dict[str, str] | None = None
    timeout: float = 60.0
    follow: bool = True


class RemoveNode(Message, verb="remove_node"):
    """The options are those of `DrainOptions`."""

    node: str
    grace: int | None = None
    timeout: float = 0.0
    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    follow: bool = True


PROTOCOL = 1
"""Verbs and answers."""
RECORDS = 1
"""The fields of a record, and the kinds and their facts."""

LINE_BYTES = 4 << 20
ENDING_SECONDS = 1.0
"""How long a front that has closed its socket may take to end."""
ANSWER_SECONDS = 5.0
"""Within this front says its first line; it is never busy for longer, but it may be stopped."""
CLAIM_SECONDS = 10.0
"""How long a start or an end may take before another command gives up waiting for the name."""
_SAYS_WHY = ("ended the cluster", "Error", "asked to stop")
"""Words in the last line of a front's log that report its end."""
_POLL_SECONDS = 0.02
_CREDENTIALS = struct.Struct("3i")


def hello() -> Fields:
    """Return front's first line."""
    return {"protocol": PROTOCOL, "records": RECORDS, "lastcall": __version__, "pid": os.getpid()}


def encode(message: Fields) -> bytes:
    """Return one line."""
    return (
        json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace") + b"\n"
    )


def record_message(record: Record) -> Fields:
    """Return a record as the socket carries it."""
    return {"record": {field: getattr(record, field) for field in Record.__slots__}}


def read_record(message: Fields) -> Record:
    """Return the record of a message. Fields that this version does not know are left out."""
    fields = message["record"]
    return Record(**{field: fields[field] for field in Record.__slots__ if field in fields})


def peer(sock: socket.socket) -> tuple[int, int]:
    """Return (pid, uid) of the other end of a Unix socket, as the kernel knows them."""
    pid, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def socket_address(directory: ClusterDirectory) -> str:
    """Return a path of the socket that fits an address (108 bytes), however long the directory's path is."""
    return f"/proc/self/fd/{directory.fd}/{SOCKET}"


class Connection:
    """A connection that front has greeted. Blocking; a context manager."""

    def __init__(self, name: str, sock: socket.socket, greeting: Fields) -> None:
        self.name = name
        self.socket = sock
        self.greeting = greeting
        self.pid = peer(sock)[0]
        """Front's."""

    def ask(self, message: Message) -> Iterator[Fields]:
        """Send a request and yield its answers until the last one. Raises ControlError, NewerVersion."""
        verb = message.verb
        self.check_protocol(verb)
        self.send(message)
        with self.socket.makefile("rb") as lines:
            for line in lines:
                answer = decode(line)
                if "error" in answer:
                    raise ControlError(f"cluster {self.name!r}: {answer['error']}")
                yield answer
                if answer.get("end"):
                    return
        if verb != "stop":
            raise ControlError(f"cluster {self.name!r} ended before it answered about its {verb}")

    def send(self, message: Message) -> None:
        """Send a request. Raises ControlError when front is gone."""
        try:
            self.socket.sendall(encode(message.to_wire()))
        except OSError as error:
            raise ControlError(f"cluster {self.name!r} has just ended") from error

    def check_protocol(self, verb: str) -> None:
        """Raise NewerVersion if this lastcall cannot understand front's answers to `verb`."""
        if verb == "stop":
            return
        for what, ours in (("protocol", PROTOCOL), ("records", RECORDS)):
            theirs = self.greeting.get(what, 0)
            if isinstance(theirs, int) and theirs > ours and (what == "protocol" or verb == "records"):
                raise NewerVersion(
                    f"cluster {self.name!r} was started by lastcall {self.greeting.get('lastcall')}, whose {what} "
                    f"version is {theirs}; this lastcall {__version__} knows {ours}: use that version, or stop the "
                    f"cluster (lastcall down {self.name})"
                )

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ControlClient:
    """The client of the cluster of that name. Blocking, but for `records`."""

    def __init__(self, name: str = DEFAULT_NAME) -> None:
        self.name = name

    def connect(self, timeout: float = ANSWER_SECONDS) -> Connection:
        """Return a connection. What a killed front left is cleared on the way.

        Raises NotRunning; ControlError while the cluster starts or ends, or when front is silent for `timeout` seconds;
        ClusterUsageError for an invalid name; DirectoryError.
        """
        sock = self._dial(timeout)
        try:
            return Connection(self.name, sock, _greeting(sock, self.name))
        except (TimeoutError, BlockingIOError) as error:
            pid = peer(sock)[0]
            sock.close()
            raise ControlError(
                f"cluster {self.name!r} does not answer within {timeout:g} s: is its front process (pid {pid}) stopped?"
            ) from error
        except BaseException:
            sock.close()
            raise

    def _dial(self, timeout: float) -> socket.socket:
        """A connected socket, before the greeting. Raises NotRunning, ControlError."""
        directory = ClusterDirectory.find(self.name)
        if directory is None:
            raise NotRunning(_not_running(self.name))
        with directory:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            try:
                sock.connect(socket_address(directory))
            except (FileNotFoundError, ConnectionRefusedError):
                sock.close()
                raise self._nobody(directory) from None
            except BaseException as error:
                sock.close()
                if isinstance(error, TimeoutError | BlockingIOError):
                    raise ControlError(
                        f"cluster {self.name!r} accepts no connection: its front process may be stopped"
                    ) from error
                raise
            if peer(sock)[1] != os.geteuid():
                sock.close()
                raise ControlError(f"the control socket of {self.name!r} is of another user (uid {peer(sock)[1]})")
            return sock

    def _nobody(self, directory: ClusterDirectory) -> Exception:
        """Nobody listens: nothing runs, or not yet, or not any more."""
        if directory.lock(make=False):
            note = what_is_left(directory)
            directory.remove()
            return NotRunning(f"{_not_running(self.name)}{note}")
        again = ClusterDirectory.find(self.name)
        if again is None:
            return NotRunning(_not_running(self.name))
        with again:
            return ControlError(f"cluster {self.name!r} is starting or stopping: try again in a moment")

    def status(self) -> Fields:
        """Return what front says of its cluster."""
        with self.connect() as connection:
            for message in connection.ask(Status()):
                return cast(Fields, message["status"])
        raise ControlError(f"cluster {self.name!r} has no answer")

    def stop(self, timeout: float) -> str:
        """End the cluster and wait until it is gone. Return `ended`, or `killed` if that took `timeout` seconds.

        Raises NotRunning with what is known about it, ControlError when even SIGKILL does not end front.
        """
        deadline = monotonic() + timeout
        how = ""
        while True:
            try:
                self._stop_once(deadline)
            except NotRunning:
                if how:
                    return how
                raise
            except ControlError:
                pass  # it starts, ends, or is stopped
            else:
                how = how or "ended"
            if monotonic() >= deadline:
                if how == "killed":
                    raise ControlError(f"cluster {self.name!r} does not end, even after SIGKILL ({_holder(self.name)})")
                self._kill()
                how, deadline = "killed", monotonic() + ANSWER_SECONDS
            sleep(_POLL_SECONDS)

    def _stop_once(self, deadline: float) -> None:
        """Ask front to stop, and wait for its end at most until `deadline`."""
        left = max(0.1, deadline - monotonic())
        with self.connect(min(left, ANSWER_SECONDS)) as connection, ExitStack() as stack:
            pidfd = None
            front = peer(connection.socket)[0]
            with suppress(OSError):  # ended since
                if front != os.getpid():
                    pidfd = os.pidfd_open(front)
                    stack.callback(os.close, pidfd)
            connection.socket.settimeout(left)
            try:
                for _ in connection.ask(Stop()):
                    pass
                while connection.socket.recv(4096):
                    pass
            except OSError:
                return
            if pidfd is not None:
                # The kernel closes the files of a process some moments before the process has ended. A front that is a
                # part of a user's program goes on.
                select.select([pidfd], [], [], ENDING_SECONDS)

    def _kill(self) -> None:
        """SIGKILL to front, and wait until the kernel has ended its tree: init is the last one.

        The pid is the listening socket's, so it is front's.
        """
        with suppress(NotRunning, ControlError, OSError), self._dial(1.0) as sock, ExitStack() as stack:
            front = peer(sock)[0]
            pidfds = [os.pidfd_open(pid) for pid in (front, *_children(front))]
            for pidfd in pidfds:
                stack.callback(os.close, pidfd)
            signal.pidfd_send_signal(pidfds[0], signal.SIGKILL)
            for pidfd in pidfds:
                select.select([pidfd], [], [], ANSWER_SECONDS)

    async def records(self, follow: bool = False, pod_uid: str = "") -> AsyncIterator[Record]:
        """Yield the records that front keeps, of all Pods or of one, and with `follow` new ones until the cluster ends.

        `async for record in await client.records(): …`. Raises what `connect` and `Connection.ask` raise.
        """
        # late: 37 ms of `down --help`
        import asyncio

        # Connecting blocks, and front may be a task of this very loop.
        connection = await asyncio.get_running_loop().run_in_executor(None, self.connect)
        try:
            connection.check_protocol("records")
            connection.send(Records(follow=follow, pod_uid=pod_uid))
        except BaseException:
            connection.close()
            raise
        connection.socket.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=connection.socket, limit=LINE_BYTES)

        async def read() -> AsyncIterator[Record]:
            try:
                while line := await reader.readline():
                    message = decode(line)
                    if "error" in message:
                        raise ControlError(f"cluster {self.name!r}: {message['error']}")
                    if "record" in message:
                        yield read_record(message)
                    if message.get("end"):
                        return
                if not follow:
                    raise ControlError(f"cluster {self.name!r} ended before it sent its records")
            finally:
                writer.close()

        return read()


def ask_cluster(name: str, message: Message, seconds: float | None) -> Iterator[str]:
    """Yield what the cluster of that name reports while it does something, each line within `seconds`, None for however
    long it takes. Raises ControlError, NotRunning."""
    with ControlClient(name).connect() as connection:
        connection.socket.settimeout(seconds)
        for answer in connection.ask(message):
            if "text" in answer:
                yield str(answer["text"])


def claim(name: str) -> ClusterDirectory:
    """Return the directory of that name for a new cluster: made, locked and empty. Close it, or `remove` it, in the
    end.

    Waits a little while another cluster of that name ends. Raises AlreadyRunning, ClusterUsageError, DirectoryError,
    OSError (a full disk).
    """
    deadline = monotonic() + CLAIM_SECONDS
    while True:
        with suppress(FileNotFoundError):
            directory = ClusterDirectory.make(name)
            if directory.lock():
                directory.clear()
                return directory
            directory.close()
        with suppress(NotRunning, ControlError), ControlClient(name).connect(1.0) as connection:
            raise AlreadyRunning(
                f"cluster {name!r} is already running (pid {connection.pid}): use it (lastcall kubeconfig {name}), "
                f"stop it (lastcall down {name}), or give the new one another name (--name)"
            )
        if monotonic() >= deadline:
            raise AlreadyRunning(
                f"another process has been starting or ending a cluster named {name!r} for {CLAIM_SECONDS:g} s: "
                f"give the new one another name (--name), or end that process ({_holder(name)})"
            )
        sleep(_POLL_SECONDS)


def _holder(name: str) -> str:
    directory = ClusterDirectory.find(name)
    if directory is None:
        return "it is gone"
    with directory:
        facts = directory.facts()
        return f"pid {facts['pid']}" if "pid" in facts else f"the one that has {directory.path}/lock open"


def what_is_left(directory: ClusterDirectory) -> str:
    """Return a sentence on a cluster that ended unasked; "" if nothing reports one."""
    facts = directory.facts()
    if not facts:
        return ""
    words = ""
    with suppress(OSError):
        lines = directory.read(LOG).splitlines()
        words = f"; {_last_words(lines)}"
    return f" (one with pid {facts.get('pid')} ended without being asked to{words})"


def _last_words(log: list[str]) -> str:
    """What a log says of its front's end: the last line of one that was killed is about something else."""
    last = log[-1] if log else ""
    if any(words in last for words in _SAYS_WHY):
        return f"the last line of its log: {last}"
    return "its log does not say why: it was probably killed (SIGKILL, or out of memory)"


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def decode(line: bytes) -> Fields:
    """Decode the object of one line. Raises ControlError."""
    try:
        return wire.decode(line)
    except wire.WireError as error:
        raise ControlError(f"the control socket said something that cannot be read ({error}): {line[:80]!r}") from error


def _greeting(sock: socket.socket, name: str) -> Fields:
    """Front's first line, read byte by byte so that none of the next is taken."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            byte = sock.recv(1)
        except ConnectionResetError:
            byte = b""
        if not byte or len(line) > 4096:
            raise ControlError(f"cluster {name!r} is stopping")
        line += byte
    message = decode(line)
    if "error" in message:
        raise ControlError(f"cluster {name!r}: {message['error']}")
    return message


def _not_running(name: str) -> str:
    return f"no cluster named {name!r} is running"
