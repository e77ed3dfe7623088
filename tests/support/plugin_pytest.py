"""A pytest of its own with the plugin, in a home of its own."""

from collections.abc import Sequence
from pathlib import Path

import ordinary_user
from run_command import Lastcall

QUIET = ("-q", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:asyncio")
IN_HOME = """
import glob, os, shutil, sys, pytest
os.chdir(os.environ["HOME"])
status = pytest.main(sys.argv[1:])
for left in glob.glob(os.environ["TMPDIR"] + "/pytest-of-*"):  # pytest-xdist makes it
    shutil.rmtree(left)
for left in glob.glob(os.environ["TMPDIR"] + "/tmp*"):  # kr8s makes it, of the kubeconfig
    if os.path.isfile(left) and open(left, "rb").read().startswith(b"-----BEGIN CERTIFICATE"):
        os.remove(left)
sys.exit(status)
"""


def pytest_of(
    tests: str, *arguments: str, user: str = ordinary_user.USERS[0], options: Sequence[str] = QUIET
) -> Lastcall:
    """pytest in a home of its own, which holds these tests."""

    def prepare(home: Path) -> None:
        (home / "home" / "pytest.ini").write_text("[pytest]\n")
        (home / "home" / "test_app.py").write_text(tests)

    return Lastcall([*options, *arguments], program=("-c", IN_HOME), user=user, prepare_home=prepare)
