"""The GitHub action and the GitLab template: their scripts run as their runners would run them."""

import os
import re
import shlex
import sys
import sysconfig
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ordinary_user
import pytest
import yaml
from run_command import Lastcall

pytestmark = pytest.mark.real_kernel

ROOT = Path(__file__).parents[3]
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
BASH = ("-c", f"import os, sys; os.execvp('bash', [*{SHELL}, sys.argv[1]])")
OFFLINE = f"""
export PIP_NO_INDEX=1 PIP_NO_DEPS=1 PIP_NO_BUILD_ISOLATION=0 PYTHONPATH={sysconfig.get_path("purelib")}
PATH={Path(sys.executable).parent}:$PATH
"""
"""What lastcall needs is there already: tests ask no index. (pip: 0 is what --no-build-isolation sets.)"""
KEPT = '"$HOME"/{.cache,.rustup,.pip} "$XDG_DATA_HOME"/lastcall "$XDG_CACHE_HOME"/pip'
"""What pip keeps (it asks for rustc's version), and the images made of the host's programs."""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 5
  containers:
    - name: app
      image: busybox:1.36
      command: [sh, -c, "trap 'exit 0' TERM; touch /tmp/ready; sleep 600 & wait"]
      readinessProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1}
"""


def environment(step: dict[str, Any], values: dict[str, str]) -> str:
    """`NAME=value` of a step's env, expressions replaced."""
    found = {}
    for name, expression in step["env"].items():
        key = re.fullmatch(r"\$\{\{ (.+) \}\}", expression)
        assert key is not None, expression
        found[name] = values[key[1]]
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in found.items())


def github(values: dict[str, str]) -> str:
    """The action's steps, each in a shell of its own, with the files between them that GitHub reads."""
    lines = [
        'export RUNNER_TEMP="$HOME/temp" GITHUB_PATH="$HOME/path" GITHUB_ENV="$HOME/env"',
        'export GITHUB_STEP_SUMMARY="$HOME/summary"',
        'mkdir "$RUNNER_TEMP"; touch "$GITHUB_PATH" "$GITHUB_ENV" "$GITHUB_STEP_SUMMARY"; cd "$HOME"',
    ]
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        assert step["shell"] == "bash"
        wanted = re.fullmatch(r"(.+) != ''", step.get("if", "x != ''"))
        assert wanted is not None
        if not values.get(wanted[1], "x"):
            continue
        lines += [
            "(", environment(step, values), 'while read -r each; do export "${each?}"; done < "$GITHUB_ENV"',
            'PATH="$(tail -n 1 "$GITHUB_PATH"):$PATH"', step["run"], ")",
        ]  # fmt: skip
    return "\n".join(lines)


@pytest.mark.parametrize("user", ordinary_user.USERS)
def test_the_action_installs_starts_a_cluster_and_runs_a_command(user: str) -> None:
    values = {
        "inputs.install": "", "github.action_path": "$SOURCE", "inputs.cluster": "ci", "inputs.options": "--nodes 2",
        "inputs.run": "run pod.yaml --timeout 90",
    }  # fmt: skip
    script = github(values).replace("'$SOURCE'", '"$HOME/source"')
    after = """
    source "$HOME/env"; lastcall="$RUNNER_TEMP/lastcall/bin/lastcall"
    test "$LASTCALL_CLUSTER" = ci; test -r "$KUBECONFIG"
    "$lastcall" get nodes ci >&2
    "$lastcall" down ci
    cat "$GITHUB_STEP_SUMMARY" >&2
    rm -rf "$RUNNER_TEMP" "$HOME"/{path,env,summary}
    """
    after += f"rm -rf {KEPT}"
    with Lastcall([OFFLINE + script + after], program=BASH, user=user, prepare_home=prepare) as command:
        result = command.finish(420)
    assert result.status == 0, result.out + result.err
    assert "node-1\nnode-2" in result.err and "ended gracefully" in result.out + result.err
    assert "### ✅ lastcall run: 1 Pod ended gracefully" in result.err, result.err


def test_gitlabs_job_installs_runs_and_leaves_its_test_report() -> None:
    spec, jobs = yaml.safe_load_all((ROOT / "templates" / "lastcall.yml").read_text())
    ((name, job),) = jobs.items()
    assert name == "$[[ inputs.job ]]"
    inputs = {f"inputs.{name}": each["default"] for name, each in spec["spec"]["inputs"].items()}
    values = {
        **inputs, "inputs.install": "$HOME/source",
        "inputs.run": "run pod.yaml --timeout 90 --output-file lastcall.xml",
    }  # fmt: skip
    report = values[job["artifacts"]["reports"]["junit"].removeprefix("$[[ ").removesuffix(" ]]")]
    script = 'export CI_PROJECT_DIR="$HOME"; cd "$HOME"\n'
    for variable, expression in job["variables"].items():
        script += f'export {variable}="{values[expression.removeprefix("$[[ ").removesuffix(" ]]")]}"\n'
    after = f'\ncat "$CI_PROJECT_DIR/{report}" >&2; rm -rf "$HOME"/.lastcall "$CI_PROJECT_DIR/{report}" {KEPT}\n'
    script += "\n".join(job["script"]) + after
    with Lastcall([OFFLINE + script], program=BASH, prepare_home=prepare) as command:
        result = command.finish(420)
    assert result.status == 0 and "ended gracefully" in result.out + result.err, result.out + result.err
    xml = result.err[result.err.index("<?xml") : result.err.index("</testsuites>") + len("</testsuites>")]
    assert [each.get("name") for each in ElementTree.fromstring(xml.encode()).iter("testcase")] == ["default/web"]


def prepare(home: Path) -> None:
    """A checkout of the action, and a manifest."""
    source = home / "home" / "source"
    source.mkdir()
    for name in ("src", "pyproject.toml", "README.md", "LICENSE", "NOTICE", "hatch_build.py"):
        if (ROOT / name).exists():
            os.symlink(ROOT / name, source / name)
    (home / "home" / "pod.yaml").write_text(POD)
