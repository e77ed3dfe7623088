"""The live page in a browser: what its tests look at."""

import json
import os
import signal
import subprocess
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from staying import Place

from browser import Page

ROOT = Path(__file__).resolve().parents[2]
AXE = ("axe-playwright-python", "0.1.8", "axe.min.js")
"""Package, release and file of PyPI that have the axe-core of these tests, 4.12.1."""


Reads = Callable[["subprocess.Popen[str]"], str]


def fresh_link(process: "subprocess.Popen[str]", read: Reads | None = None) -> str:
    """A link that was printed just now: an older one may be older than it is good for."""
    read = read or next_link
    renew(read(process))
    return read(process)


def renew(link: str) -> None:
    """Bring its token, in time or too late, so that there is another one."""
    origin, _, token = link.partition("/#token=")
    body, headers = json.dumps({"token": token}).encode(), {"Origin": origin}
    with urllib.request.urlopen(urllib.request.Request(f"{origin}/api/enter", body, headers)) as answer:
        answer.read()


def next_link(process: "subprocess.Popen[str]") -> str:
    """The link that `lastcall ui` tells on stdout: each is good for one browser, after it was used there is another."""
    assert process.stdout is not None
    while "http://" not in (line := process.stdout.readline()):
        assert line, "lastcall ui has ended"
    return line.split()[-1]


def link_of(process: "subprocess.Popen[str]") -> str:
    """The link that a command tells on stderr."""
    assert process.stderr is not None
    while line := process.stderr.readline():
        if "/#token=" in line:
            return next(word for word in line.split() if word.startswith("http://"))
    raise AssertionError(f"it ended with {process.wait()}, and told no link")


def ended(process: "subprocess.Popen[str]", status: int) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == status, out + err
    assert "Traceback" not in err, err
    return out + err


class Served:
    """A cluster and its page."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.facts = place.up()
        self.kubeconfig = place.ok("kubeconfig").strip()
        self._process = place.start("ui")

    def link(self) -> str:
        return fresh_link(self._process)

    def create(self, *pods: Any) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(pods)})
        self.kubectl("create", "-f", "-", stdin=text)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.place.kubectl(self.kubeconfig, *arguments, stdin=stdin)

    def stop(self) -> None:
        """Ctrl-C, if it has not come yet."""
        if self._process.stdout is None or self._process.stdout.closed:
            return
        self._process.send_signal(signal.SIGINT)
        _, err = self._process.communicate(timeout=60)
        assert "Traceback" not in err, err


@contextmanager
def served_page() -> Iterator[Served]:
    """In a place of its own."""
    with Place() as place:
        page = Served(place)
        try:
            yield page
        finally:
            page.stop()


@cache
def read_axe() -> str:
    """Return the script of axe-core, "" with a warning where it cannot be had; with CI=true that is a failure."""
    get: list[str | Path] = [ROOT / "tools/get-pypi-file", *AXE]
    run = subprocess.run(get, capture_output=True, text=True, timeout=300, check=False)
    if run.returncode == 0:
        return Path(run.stdout.strip()).read_text("utf-8")
    why = f"axe-core is missing (tools/get-pypi-file {' '.join(AXE)}): {run.stderr.strip()[-300:]}"
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    warnings.warn(f"{why}: violations are not looked for", stacklevel=2)
    return ""


async def violations(page: Page) -> list[str]:
    """Return what axe finds; nothing where axe is missing."""
    axe = read_axe()
    if not axe:
        return []
    await page.eval(f"{axe}; true")
    found = await page.eval(
        "axe.run({resultTypes: ['violations']}).then(r => r.violations.map("
        "v => v.id + ' ' + v.nodes.map(n => n.html + n.failureSummary).slice(0, 3).join(' | ')))"
    )
    return list(found)


async def assert_good(page: Page) -> None:
    """Nothing was refused by the policy, nothing left the machine, nothing is wider than the window, axe is content."""
    assert page.errors == []
    origin = await page.eval("location.origin")
    assert [each for each in page.requests if not each.startswith((origin, "data:"))] == []
    assert await page.eval("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == []


async def seen(page: Page, expression: str) -> None:
    """Wait until it is true: an element, which has no value outside of the page, is."""
    await page.until(f"!!({expression})")


async def choose(page: Page, name: str) -> None:
    await seen(page, f"document.querySelector('.cell[data-pod$=\"/{name}\"]')")
    await page.eval(f"document.querySelector('.cell[data-pod$=\"/{name}\"]').click()")


async def write(page: Page, selector: str, value: str) -> None:
    await page.eval(
        f"(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event('input', {{bubbles: true}})) }})"
        f"(document.querySelector({json.dumps(selector)}))"
    )


TEXT = "document.querySelector('main').innerText"


OVERLAPS = """(() => {
  const boxes = [...document.querySelectorAll('.lanes text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  const found = [];
  boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 2 && high > 4) found.push(a + ' | ' + b);
  }));
  return found;
})()"""
"""Pairs of words in the lanes that lie on one another."""
