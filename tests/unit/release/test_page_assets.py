"""The page of `lastcall ui` in the wheel is what its source builds."""

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "src/lastcall/ui/assets"
PAGE_SOURCES = ROOT / "ui"
BUILT = ("ui.js", "tour.js", "rollout.js", "cluster.js", "ui.css")
MOST = {"ui.js": 25_000, "ui.css": 6_000, "tour.js": 25_000, "rollout.js": 25_000, "cluster.js": 25_000}
"""Bytes of a file, compressed. The page loads ui.js and ui.css; the others come when their view is opened."""


def is_untouched() -> bool:
    """Return True in CI for a change that has nothing of the page; where its base is not known, all is compared."""
    if os.environ.get("CI") != "true":
        return False
    command = ["git", "diff", "--quiet", "HEAD^", "--", "ui", "src/lastcall/ui/assets", "src/lastcall/ui/catalogue"]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode == 0


@pytest.mark.loopback
def test_the_built_page_equals_a_fresh_build(tmp_path: Path) -> None:
    if is_untouched():
        pytest.skip("nothing of ui/ was changed")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not on PATH: the page's assets are not compared with a fresh build")
    packages = PAGE_SOURCES / "node_modules"
    if not packages.is_dir():
        pytest.skip("ui/node_modules is not there (make ui): the page's assets are not compared")
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=PAGE_SOURCES, check=True, timeout=120)
    for name in BUILT:
        assert (tmp_path / name).read_bytes() == (ASSETS / name).read_bytes(), f"{name} is old: make ui"


@pytest.mark.parametrize("name", BUILT)
def test_a_file_of_the_page_keeps_its_budget(name: str) -> None:
    assert len(gzip.compress((ASSETS / name).read_bytes(), mtime=0)) <= MOST[name]


def test_the_page_itself_names_no_other_script() -> None:
    index = (ASSETS / "index.html").read_text()
    assert re.findall(r'src="([^"]+)"', index) == ["/assets/ui.js"]


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for path in ASSETS.iterdir():
        text = path.read_text()
        assert not [each for each in ('src="http', 'href="http', "@import", "import(", "eval(") if each in text], (
            path.name
        )


def test_the_lock_names_no_registry_and_has_a_checksum_for_each_package() -> None:
    lock = (PAGE_SOURCES / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') >= 4
