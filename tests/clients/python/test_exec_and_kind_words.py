"""`lastcall exec`, kind's words and the merged kubeconfig on the real kernel, as each user."""

import ordinary_user
import pytest
from kubectls import KUBECTL, needs_kubectl
from run_command import Lastcall, lastcall
from staying import Place

NO_CACHE = ("--cache-dir", "/dev/null/none")

pytestmark = [pytest.mark.real_kernel, needs_kubectl]


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_exec_runs_a_command_with_a_cluster_and_ends_as_it_does(user: str) -> None:
    told = lastcall(
        ["exec", "--up", "--nodes 2", "--", str(KUBECTL), *NO_CACHE, "get", "nodes", "-o", "name"], user=user
    )
    assert told.status == 0 and told.out.split() == ["node/node-1", "node/node-2"], told.err
    told = lastcall(["exec", "sh", "-c", 'test -n "$LASTCALL_CLUSTER" && test -f "$KUBECONFIG" && exit 7'], user=user)
    assert told.status == 7
    assert lastcall(["exec", "--", "sh", "-c", "kill -9 $$"], user=user).status == 137


def test_exec_says_what_is_wrong() -> None:
    told = lastcall(["exec", "--", "no-such-command"])
    assert told.status == 2 and "'no-such-command' is not installed" in told.err
    told = lastcall(["exec", "--up", "--nodes 0", "--", "true"])
    assert told.status == 1 and "--nodes" in told.err


def test_a_signal_ends_the_command_and_the_cluster() -> None:
    with Lastcall(["exec", "--", "sh", "-c", "echo up; exec sleep 600"]) as command:
        command.wait_for("up")
        command.interrupt(15)
        assert command.finish().status == 143


def test_kind_s_words_and_the_user_s_own_kubeconfig() -> None:
    with Place() as place:
        file = place.home / "tmp" / "config"
        place.environment["KUBECONFIG"] = str(file)
        file.write_text("apiVersion: v1\nkind: Config\ncurrent-context: ''\n")
        assert place.run("create", "cluster", "--name", "k", "--kubeconfig-merge").status == 0
        assert "lastcall-k" in file.read_text() and file.stat().st_mode & 0o777 == 0o600
        assert place.run("get", "clusters").out.split() == ["k"]
        assert place.run("get", "nodes", "k").out.split() == ["node-1"]
        assert "current-context: k" in place.run("get", "kubeconfig", "k").out
        assert "k · running" in place.run("ls", "k").out
        assert place.run("delete", "cluster", "--name", "k").status == 0
        assert "lastcall-k" not in file.read_text() and "current-context: ''" in file.read_text()
        file.unlink()
