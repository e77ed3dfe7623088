"""How long from nothing to a first passing test: `python tools/first_test.py [PYTHON]`, as an ordinary user.

Makes an environment, installs the wheel and pytest from the index as pip is set up here, writes a test that starts a
Pod and asserts how it ends, and runs it; then `pipx run --spec WHEEL lastcall demo graceful`. As root it becomes nobody
first. Nothing stays.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import release

ROOT = Path(__file__).resolve().parents[1]
NOBODY = 65534

TEST = """
def test_a_pod_ends_gracefully(lastcall_namespace):
    lastcall_namespace.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "app"},
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "busybox:1.36",
                        "command": ["sh", "-c", "trap 'exit 0' TERM; touch /ready; while :; do sleep 0.1; done"],
                        "readinessProbe": {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1},
                    }
                ]
            },
        },
        wait=True,
    )
    ending = lastcall_namespace.delete("pod/app")
    assert ending.graceful, ending.text
"""


def seconds(*command: str, ok: int = 0) -> float:
    """Run it. Raises SystemExit with what it said where it fails."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != ok:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return time.monotonic() - began


def as_user(python: str, wheel: Path, home: Path) -> None:
    os.chdir(home)
    os.environ.update(HOME=str(home), TMPDIR=str(home), XDG_CONFIG_HOME=str(home / "config"))
    Path("test_first.py").write_text(TEST)
    steps = {
        "python -m venv": seconds(python, "-m", "venv", "venv"),
        "pip install lastcall pytest": seconds("venv/bin/pip", "install", "-q", str(wheel), "pytest"),
        "the first test": seconds("venv/bin/pytest", "-q", "test_first.py"),
    }
    for words, took in steps.items():
        say(took, words)
    say(sum(steps.values()), "in all")
    say(seconds("venv/bin/pytest", "-q", "test_first.py"), "the same test again")
    seconds("venv/bin/pip", "install", "-q", "pipx")
    pipx = ["venv/bin/pipx", "run", "--python", python, "--spec", str(wheel), "lastcall", "demo", "graceful"]
    say(seconds(*pipx), f"pipx run --spec {wheel.name} lastcall demo graceful (the Pod's end takes 9 s of it)")


def say(took: float, words: str) -> None:
    sys.stdout.write(f"{took:6.1f} s  {words}\n")
    sys.stdout.flush()


def main(python: str) -> int:
    with tempfile.TemporaryDirectory(prefix="lastcall-first-") as name:
        place = Path(name)
        wheel = release.build(ROOT, place / "dist")[1]
        home = place / "home"
        home.mkdir()
        place.chmod(0o755)
        child = os.fork()
        if child == 0:
            if os.getuid() == 0:
                os.chown(home, NOBODY, NOBODY)
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
            status = 1
            try:
                as_user(python, wheel, home)
                status = 0
            except SystemExit as error:
                sys.stderr.write(f"{error}\n")
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else sys.executable))
