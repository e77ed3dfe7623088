"""The commands of README and of the first guides in their order, by a shell, as somebody who copies them."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from kubectls import needs_kubectl
from run_command import Lastcall

pytestmark = pytest.mark.real_kernel

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "docs/run.md", "docs/clusters.md")
ELSEWHERE = {
    "git clone": "tools/try_machines.py",
    "lastcall run examples/": "tests/clients/shown/test_example_apps.py",
    "lastcall lint examples/": "tests/unit/cli/test_lint_command.py",
    "lastcall tour": "tests/browser/test_pages_of_commands.py",  # stays
    "lastcall rollout ": "tests/clients/rollout/test_rollout.py",
    "lastcall trace ": "tests/scenarios/pods/test_trace.py",  # needs a cluster; --serve stays
    "lastcall image build-agent": "tests/unit/kube/cri/sandbox/images/test_agent_image.py",  # an image with Python
    "make ": ".ci/run",
    "lastcall demo": "tests/node/test_demo_pods_end.py",
    "lastcall node add": "tests/clients/test_nodes_come_and_go.py",  # after this page has ended its cluster
    "lastcall node remove": "tests/clients/test_nodes_come_and_go.py",
    "lastcall run pod.yaml --keep": "tests/clients/test_up_and_down.py",
    "lastcall image pull": "tests/clients/test_images_from_registries.py",
    "lastcall image import": "tests/clients/test_images_from_registries.py",
    "kubectl exec c": "tests/clients/test_service_names.py",  # needs curl in the image
    "kubectl debug": "tests/clients/kubectl",  # not a verb of Debian's kubectl
}
"""What does not run here: where it does."""

KEPT = "test -s story.html\n"
REMOVED = """trap 'rm -rf "$HOME"/story.html "$HOME"/.kube "$XDG_DATA_HOME"/lastcall' EXIT\n"""
"""What the commands keep, as they should: a page, images, kubectl's cache. Removed also when a command failed."""

SCRIPT = "trap 'exit 0' TERM; touch /tmp/ready; sleep 600 & wait"
CONTAINER: dict[str, Any] = {
    "name": "app",
    "image": "busybox:1.36",
    "command": ["sh", "-c", SCRIPT],
    "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1},
}
SPEC = {"terminationGracePeriodSeconds": 5, "containers": [CONTAINER]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": SPEC}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {"metadata": {"labels": {"app": "shop"}}, "spec": SPEC},
    },
}


def commands() -> list[str]:
    """Return the lines after a prompt, page by page."""
    lines = [line for page in PAGES for line in (ROOT / page).read_text().splitlines()]
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in lines if line.startswith("$ ")]


def prepare(home: Path) -> None:
    there = home / "home"
    (there / "k8s").mkdir()
    (there / "pod.yaml").write_text(json.dumps(POD))
    (there / "k8s" / "pod.yaml").write_text(json.dumps(POD))
    (there / "app.yaml").write_text((ROOT / "examples" / "rollout" / "polite.yaml").read_text())
    (there / "deployment.yaml").write_text(json.dumps(DEPLOYMENT))


def test_the_tests_that_try_the_others_are_there() -> None:
    assert all((ROOT / path).exists() for path in ELSEWHERE.values())
    assert all(any(command.startswith(prefix) for command in commands()) for prefix in ELSEWHERE)


@needs_kubectl
def test_commands_do_one_after_the_other_what_the_pages_show() -> None:
    here = [command for command in commands() if not command.startswith(tuple(ELSEWHERE))]
    assert len(here) >= 12
    steps = "".join(f"echo {shlex.quote('== ' + command)} >&2\n{command}\n" for command in here)
    script = REMOVED + 'set -eu\ncd "$HOME"\nPATH="$(dirname "$0"):$PATH"\n' + steps + KEPT
    program = (
        "-c",
        "import os, sys; os.execvp('bash', ['bash', '-c', sys.argv[1], sys.executable])",
    )
    with Lastcall([script], program=program, prepare_home=prepare) as command:
        result = command.finish(420)
    assert result.status == 0, result.out + result.err
