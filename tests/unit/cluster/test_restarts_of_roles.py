"""When init starts a role again, and what it takes for a stranger."""

import os
import subprocess
from pathlib import Path

from lastcall.cluster.orphans import strangers
from lastcall.cluster.restarts import MAX_DELAY, RestartBackoff, restart_delay


def test_the_first_restart_is_at_once_and_early_deaths_wait_longer_up_to_ten_seconds() -> None:
    assert [restart_delay(deaths) for deaths in range(5)] == [0.0, 0.01, 0.02, 0.04, 0.08]
    assert [restart_delay(deaths) for deaths in (10, 11, 12, 1000)] == [5.12, MAX_DELAY, MAX_DELAY, MAX_DELAY]


def test_a_role_that_had_lived_for_a_while_starts_over() -> None:
    backoff = RestartBackoff()
    assert [backoff.died(0.1) for _ in range(4)] == [0.0, 0.01, 0.02, 0.04]
    assert [backoff.died(10.0), backoff.died(0.1), backoff.died(9.9)] == [0.0, 0.01, 0.02]


def test_everything_but_pid_1_the_roles_and_their_descendants_is_a_stranger() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo up; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        (child,) = [int(word) for word in children]
        with_role = strangers([shell.pid])
        without = strangers([])
        assert 1 not in without and {shell.pid, child, os.getpid()} <= set(without)
        assert not {shell.pid, child} & set(with_role) and os.getpid() in with_role
        os.kill(child, 9)
        shell.kill()
