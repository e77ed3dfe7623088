"""init's eye on a real process with a real event loop, faster than a cluster's."""

import asyncio
import collections
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from lastcall.kube.cluster.health import decide as hang_rule
from lastcall.kube.cluster.health import heartbeat, watchdog
from lastcall.kube.cluster.health.heartbeat import Heartbeat, WorkingOn
from lastcall.kube.cluster.health.watchdog import Hang, Watchdog, look_at
from lastcall.world import crash_guard
from lastcall.world.clock import RealClock

pytestmark = pytest.mark.loopback

ROLE = "control-plane"


def spin() -> None:
    while True:
        pass


def spin_in_c() -> None:
    collections.deque(itertools.repeat(None), maxlen=0)


def sleep() -> None:
    time.sleep(1000)  # a process that hangs


def deaf() -> None:
    """As a frozen control group of version 2: asleep, and no signal gets through."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [heartbeat.STACK_SIGNAL])
    time.sleep(1000)  # a process that hangs


def nothing() -> None:
    pass


class Role:
    """A child whose loop turns for a while, and then does `what` in a turn of its own."""

    def __init__(self, what: Callable[[], None]) -> None:
        self.page = Heartbeat(ROLE)
        self.page.reset()
        self.dog = Watchdog({ROLE: self.page}, RealClock())
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.page.take()
                asyncio.run(self._run(what))
            finally:
                os._exit(1)
        self.dog.watch(ROLE, self.pid)

    async def _run(self, what: Callable[[], None]) -> None:
        self.page.start(asyncio.get_running_loop())
        self.page.as_usual()
        self.page._words[1] = 1  # a second of own time
        turn = asyncio.ensure_future(self._turn(what))
        await asyncio.sleep(0.1)  # the turn has begun
        crash_guard.on_turn("other-controller", "default/innocent")
        await turn
        await asyncio.sleep(1000)  # until it is killed

    async def _turn(self, what: Callable[[], None]) -> None:
        crash_guard.on_turn("job-controller", "default/x")
        await asyncio.sleep(0.3)  # the other turn comes in between
        what()

    def look(self, seconds: float, until: Callable[[], bool] = lambda: False) -> list[tuple[str, Hang]]:
        """As init does, for so long or until a hang is told."""
        deadline, found = time.monotonic() + seconds, []
        while time.monotonic() < deadline and not found and not until():
            time.sleep(self.dog.seconds_to_wait())  # as long as init sleeps
            found += self.dog.look()
        return found

    def is_alive(self) -> bool:
        return os.waitpid(self.pid, os.WNOHANG) == (0, 0)

    def end(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], Role]]:
    monkeypatch.setattr(watchdog, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(watchdog, "HEALTHY_LOOK_SECONDS", 0.2)
    monkeypatch.setattr(watchdog, "STACK_IS_WHOLE_SECONDS", 0.5)
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(hang_rule, "IDLE_SHARE", 0.0)  # on a machine that is busy with other tests
    monkeypatch.setattr(crash_guard, "on_turn", None)
    made: list[Role] = []

    def make(what: Callable[[], None]) -> Role:
        made.append(Role(what))
        return made[-1]

    yield make
    for each in made:
        try:
            each.end()
        except (ProcessLookupError, ChildProcessError):
            continue


@pytest.mark.parametrize("what", [spin, sleep])
def test_a_hang_is_told_with_its_stack_and_whose_turn_it_was(role: Callable[..., Role], what: Callable) -> None:
    hung = role(what)
    ((name, hang),) = hung.look(60)
    assert name == ROLE and hang.seconds >= 1
    assert f"in {what.__name__}\n" in hang.stack and "Current thread" in hang.stack
    assert hang.working_on == WorkingOn("job-controller", "default/x"), "and not whose turn began last"
    assert hung.page.is_exact
    assert (hang.cpu > 0.9) == (what is spin)
    _, status = os.waitpid(hung.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert hung.dog.died(ROLE) is hang and hung.dog.died(ROLE) is None
    assert hung.dog.seconds_to_wait() is None, "nobody is left to be watched"


def test_a_hang_in_c_is_told_with_the_turn_that_began_last(role: Callable[..., Role]) -> None:
    hung = role(spin_in_c)
    ((_, hang),) = hung.look(60)
    assert "in spin_in_c\n" in hang.stack and not hung.page.is_exact
    assert hang.working_on == WorkingOn("other-controller", "default/innocent") or hang.working_on is None


def test_a_loop_that_turns_is_left_alone(role: Callable[..., Role]) -> None:
    fine = role(nothing)
    assert fine.look(3) == [] and fine.is_alive()
    assert fine.page.beats > 5 and fine.dog.died(ROLE) is None


def test_a_role_that_is_stopped_is_left_alone_and_goes_on(role: Callable[..., Role]) -> None:
    stopped = role(nothing)
    stopped.look(60, lambda: stopped.page.beats > 3)
    os.kill(stopped.pid, signal.SIGSTOP)
    assert stopped.look(4) == [] and stopped.is_alive()
    before = stopped.page.beats
    os.kill(stopped.pid, signal.SIGCONT)
    assert stopped.look(60, lambda: stopped.page.beats > before) == []
    assert stopped.look(1) == [] and stopped.is_alive()


def test_who_does_not_answer_the_signal_cannot_run_and_is_left_alone(
    role: Callable[..., Role], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "STACK_WITHIN_SECONDS", 0.3)
    frozen = role(deaf)
    asked: list[int] = []
    ask = Heartbeat.ask_for_stack
    monkeypatch.setattr(Heartbeat, "ask_for_stack", lambda page, pid: (asked.append(pid), ask(page, pid)))
    assert frozen.look(60, lambda: len(asked) >= 2) == [], "asked, given up, watched anew, asked again"
    assert frozen.is_alive()


def test_a_loop_that_turns_again_while_its_stack_is_written_is_left_alone(
    role: Callable[..., Role], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "STACK_IS_WHOLE_SECONDS", 2.0)
    slow = role(lambda: time.sleep(2.5))  # the length of the hang is what is tested
    assert slow.look(60, lambda: slow.page.stack != "") == []
    assert slow.look(4) == [] and slow.is_alive() and slow.dog.died(ROLE) is None


def test_a_start_may_take_longer(role: Callable[..., Role]) -> None:
    page = Heartbeat(ROLE)
    assert page.allowed == 10
    page.reset()
    assert (page.allowed, page.takes_longer, page.working_on) == (600, "starting", None)
    page.takes("a store of 3 GB", 30)
    assert (page.allowed, page.takes_longer) == (30, "a store of 3 GB")
    page.as_usual()
    assert (page.allowed, page.takes_longer) == (10, "")


def test_a_note_is_short_and_may_be_shown_on_a_terminal() -> None:
    page = Heartbeat(ROLE)
    page.note("API request", "GET /\x1b[2J\x00/" + "ü" * 5000)
    noted = page.working_on
    assert noted is not None and noted.component == "API request"
    assert noted.key == "GET /\\x1b[2J", "control characters are shown as what they are, and NUL ends it"
    page.note("API request", "ü" * 5000)
    assert page.working_on == WorkingOn("API request", "ü" * 250)
    page.note("c", "\udc80k")
    assert page.working_on == WorkingOn("c", "?k")
    page.note("", "")
    assert page.working_on is None


def test_what_proc_tells_of_a_process() -> None:
    before = look_at(os.getpid(), 0.0, 1)
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        pass
    after = look_at(os.getpid(), 1.0, 1)
    assert after.state == "R" and 0.15 < after.cpu - before.cpu < 60
    assert after.waited >= before.waited and after.idle >= before.idle > 0
    with pytest.raises(FileNotFoundError):
        look_at(2**22 + 1, 0.0, 0)
