"""The two kubectl programs that tests run: the one on PATH, and Debian's 1.20, unpacked beside the project."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

CURRENT, DEBIAN = "current", "debian"


@cache
def find_kubectl(which: str) -> str:
    """The program's path. Without it the test is skipped; with CI=true that is a failure."""
    if which == CURRENT:
        path = shutil.which("kubectl") or ""
        why = "kubectl is not on PATH"
    else:
        run = subprocess.run([ROOT / "tools" / "get-debian-kubectl"], capture_output=True, text=True, timeout=300)
        path, why = run.stdout.strip(), f"Debian's kubernetes-client is not available: {run.stderr.strip()[-300:]}"
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
        """stdout, or stderr when it shall fail."""
        code, out, err = self.run(*arguments, stdin=stdin, timeout=timeout)
        assert code == status, (arguments, code, out, err)
        return err if status else out

    def get(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))
