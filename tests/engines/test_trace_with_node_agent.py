"""`lastcall trace --node-agent` as a whole: the image, the Jobs, what becomes observed, and that nothing is left."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ordinary_user
import pytest
from engines.python_image import write_python_image
from kubectls import needs_kubectl
from pods import container, pod
from staying import Place
from waiting import eventually

pytestmark = pytest.mark.real_kernel

AGENT = ("--node-agent", "--node-agent-ptrace")
"""As root: nobody else may look into the control groups that a cluster of lastcall makes. A kubelet's are open."""
DEAF = "trap '' TERM; while true; do sleep 0.2; done"
SHORT = """
import sys
from lastcall.trace.node_agent import job
job.IDLE_SECONDS, job.TTL_SECONDS = 3, 1
from lastcall.cli.main import main
sys.argv[0] = "lastcall"
main()
"""
"""The command line with an agent that waits for a word of its client for 3 s, not 60."""


class There:
    """A cluster, with the agent's image."""

    def __init__(self, place: Place) -> None:
        self.place = place
        archive = place.home / "tmp" / "python.tar"
        write_python_image(archive, "python-of-the-tests:1")
        place.ok("image", "import", str(archive))
        place.ok("image", "build-agent", "--base", "python-of-the-tests:1")
        archive.unlink()
        place.up()
        self.kubeconfig = place.ok("kubeconfig").strip()

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, stdin=stdin)

    def deaf(self, name: str) -> None:
        """A Pod that runs and will not go by itself."""
        self.kubectl("create", "-f", "-", stdin=json.dumps(pod(name, container("app", DEAF), grace=2)))
        self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", f"pod/{name}")

    def trace(self, *arguments: str) -> "subprocess.Popen[str]":
        return self.place.start("trace", "--kubeconfig", self.kubeconfig, *arguments)

    def agents(self) -> list[str]:
        """The Jobs and Pods of agents."""
        found = self.kubectl("get", "jobs,pods", "-A", "-l", "app.kubernetes.io/name=lastcall-node-agent", "-o", "name")
        return found.split()

    def wait_for_an_agent(self) -> None:
        """Until it runs and has answered its client."""
        label = ("-l", "app.kubernetes.io/name=lastcall-node-agent")

        def answers() -> bool:
            running = "Running" in self.kubectl("get", "pods", *label, "--no-headers", "--ignore-not-found")
            return running and '"pong"' in self.kubectl("logs", *label, "--tail=100")

        eventually(answers, "an agent that answers", said=lambda: self.kubectl("get", "jobs,pods,events", "-A"))

    def ending(self, *arguments: str) -> dict[str, Any]:
        """The story of one deaf Pod that is deleted, traced with these options."""
        name = f"deaf-{len(arguments)}"
        self.deaf(name)
        with self.trace(f"pod/{name}", "--output", "json", *arguments) as trace:
            assert trace.stderr is not None
            try:
                if arguments:
                    self.wait_for_an_agent()
                else:
                    while "waiting for the end" not in trace.stderr.readline():
                        assert trace.poll() is None
                self.kubectl("delete", "pod", name, "--wait=false")
                out, err = trace.communicate(timeout=60)
            except BaseException:
                trace.kill()
                raise
        assert trace.returncode == 3, err
        (story,) = json.loads(out)["pods"]
        assert story["outcome"] == "killed"
        found: dict[str, Any] = story
        return found


@pytest.fixture
def there() -> Iterator[There]:
    with Place(ordinary_user.USERS[0]) as place:
        place.kept.append(str(place.home / "data"))
        if place.user != "root":
            pytest.skip("agents need a node that is root's")
        yield There(place)


def by_kind(story: dict[str, Any]) -> dict[str, str]:
    """Kind of a record → evidence, the best."""
    found: dict[str, str] = {}
    for record in story["records"]:
        if found.get(record["kind"]) != "observed":
            found[record["kind"]] = record["evidence"]
    return found


@pytest.mark.core
@needs_kubectl
def test_an_agent_makes_observed_what_the_api_does_not_tell_and_leaves_nothing(there: There) -> None:
    without, with_agent = there.ending(), there.ending(*AGENT)

    assert by_kind(without)["ProcessExited"] == "inferred"
    assert "ProcessSignalState" not in by_kind(without)
    assert any("what PID 1 does with its stop signal" in each for each in without["notKnown"])

    seen = by_kind(with_agent)
    assert (seen["ProcessExited"], seen["ProcessSignalState"]) == ("observed", "observed")
    (app,) = with_agent["containers"]
    assert (app["disposition"], app["exitCode"], app["killedBy"]) == ("ignored", 137, "grace over")
    assert not any("what PID 1 does" in each or "known to a second" in each for each in with_agent["notKnown"])
    eventually(lambda: not there.agents(), "no Job and no Pod of an agent is left")


@needs_kubectl
def test_a_run_on_the_cluster_has_agents_before_it_ends_its_pods(there: There) -> None:
    manifest = there.place.home / "tmp" / "deaf.json"
    manifest.write_text(json.dumps(pod("deaf", container("app", DEAF), grace=2)))
    manifest.chmod(0o644)
    (context,) = (each["name"] for each in json.loads(there.kubectl("config", "view", "-o", "json"))["contexts"])
    where = ("--kubeconfig", there.kubeconfig, "--context", context, f"--yes={context}")
    result = there.place.run("run", str(manifest), *where, "-o", "json", *AGENT, timeout=120)
    manifest.unlink()
    assert result.status == 3, result.err
    (story,) = json.loads(result.out)["pods"]
    seen = by_kind(story)
    assert (seen["ProcessExited"], seen["ProcessSignalState"]) == ("observed", "observed")
    assert "run an agent, which reads the node, on each node of these Pods" in result.err
    eventually(lambda: not there.agents(), "no Job and no Pod of an agent is left")


@needs_kubectl
def test_an_agent_whose_client_was_killed_ends_by_itself_and_is_removed(there: There, tmp_path: Path) -> None:
    there.deaf("stays")
    command = there.place.command("trace", "--kubeconfig", there.kubeconfig, "--node-agent")
    at = command.index("-m")
    command[at : at + 2] = ["-c", SHORT]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True) as client:
        try:
            there.wait_for_an_agent()
        finally:
            client.send_signal(signal.SIGKILL)
    assert there.agents()
    eventually(lambda: not there.agents(), "no Job and no Pod of an agent is left")
    assert there.kubectl("get", "pods", "-o", "name").split() == ["pod/stays"]
