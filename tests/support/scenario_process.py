"""A scenario on the kernel in a process of its own, as root or as an ordinary user."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ordinary_user


def answer_of(scenario: Path, user: str) -> dict[str, Any]:
    """Run a program as a user; return the JSON object that it prints. Raises AssertionError if it fails."""
    command = [*ordinary_user.command_prefix(user), sys.executable, str(scenario)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
