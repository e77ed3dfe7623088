"""`lastcall story` and the pages of `lastcall run` as the real commands, on the kernel."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import ordinary_user
import pytest
from kubectls import needs_kubectl
from pods import container, pod
from run_command import lastcall
from staying import Place
from trace_format import trace_problems
from waiting import eventually

pytestmark = pytest.mark.real_kernel


ENDS = "trap 'echo bye; exit 0' TERM; while true; do sleep 0.1; done"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory where every user may write."""
    with tempfile.TemporaryDirectory(prefix="lastcall-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def _all_gone(place: Place) -> list[str]:
    """The lines of the list once it knows how two Pods ended."""
    lines = place.ok("story").splitlines()
    return lines if len(lines) == 3 and not any("-  " in line or "is ending" in line for line in lines) else []


@needs_kubectl
def test_the_story_of_a_pod_that_ended_in_a_running_cluster() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        place.up()
        kubeconfig = place.ok("kubeconfig").strip()
        assert place.ok("story").startswith("no Pod of cluster 'lastcall' has ended yet")
        pods = [pod("ends", container("app", ENDS)), pod("deaf", container("app", command=["sleep", "99"]))]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
        place.kubectl(kubeconfig, "create", "-f", "-", stdin=text)
        place.kubectl(kubeconfig, "wait", "--for=condition=Ready", "--timeout=60s", "pod/ends", "pod/deaf")
        runs = place.run("story", "ends")
        assert runs.status == 2 and "none of its containers has ended yet" in runs.err
        place.kubectl(kubeconfig, "delete", "pod", "ends", "deaf", "--grace-period=1")
        listed = eventually(lambda: _all_gone(place), "both are known to be gone")
        assert {line.split()[1] for line in listed[1:]} == {"ends", "deaf"}
        told = place.run("story", "ends")
        assert told.status == 0 and "default/ends ended gracefully" in told.out and "│ bye" in told.out
        killed = place.run("story", "deaf", "--output", "json")
        (story,) = json.loads(killed.out)["pods"]
        assert killed.status == 3 and story["outcome"] == "killed" and story["gone"] is not None
        assert story["containers"][0]["killedBy"] == "grace over"
        assert {record["evidence"] for record in story["records"]} == {"observed"}
        page = place.run("story", "deaf", "--output", "html")
        assert page.status == 3 and page.out.startswith("<!doctype html>") and "deaf was killed" in page.out
        trace = json.loads(place.run("story", "deaf", "--output", "chrome-trace").out)
        assert list(trace_problems(trace)) == []
        unknown = place.run("story", "nobody")
        assert unknown.status == 2 and "default/deaf" in unknown.err and "default/ends" in unknown.err


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_run_writes_the_page_and_shows_the_text_as_always(user: str, shared: Path) -> None:
    page = shared / "story.html"
    manifest = pod("ends", container("app", ENDS))
    done = lastcall(["run", "-", "--after", "1", "--output-file", str(page)], manifests=[manifest], user=user)
    assert done.status == 0, done.err
    assert "default/ends ended gracefully" in done.out
    text = page.read_text()
    assert text.rstrip().endswith("</html>") and '"text":"bye"' in text and "│ bye</span>" in text
    assert [each.name for each in shared.iterdir()] == ["story.html"]


def test_a_page_on_a_pipe_is_the_page_alone() -> None:
    manifest = pod("ends", container("app", ENDS))
    done = lastcall(["run", "-", "--after", "1", "--output", "html"], manifests=[manifest])
    assert done.status == 0, done.err
    assert done.out.startswith("<!doctype html>") and done.out.rstrip().endswith("</html>")
    assert "SIGTERM" in done.err  # the live timeline
