"""Drives Debian's chromium over the DevTools protocol: one browser, many pages, no other library than aiohttp.

The browser has a profile of its own in a temporary directory, no network but `file:` and `about:`, and ends with its
whole process group.
"""

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import aiohttp
from waiting import eventually, until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable")

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers; the pages are our own files
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--proxy-server=127.0.0.1:9",  # nothing gets out
    "--remote-debugging-port=0",
)


def find_browser() -> str | None:
    """The path of a chromium on this machine."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class BrowserProcess:
    """`with BrowserProcess() as process:`; raises AssertionError where there is no chromium."""

    def __enter__(self) -> Self:
        program = find_browser()
        assert program is not None, "no chromium on PATH"
        self._home = Path(tempfile.mkdtemp(prefix="lastcall-browser-"))
        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._home}/profile", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(self._home), "XDG_CONFIG_HOME": str(self._home)},
            start_new_session=True,
        )
        try:
            self.address = self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _wait(self) -> str:
        """The address of its DevTools."""
        told = self._home / "profile" / "DevToolsActivePort"

        def address() -> str:
            assert self._process.poll() is None, f"chromium ended with {self._process.returncode}"
            lines = told.read_text().splitlines() if told.exists() else []
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}" if len(lines) >= 2 else ""

        return eventually(address, "chromium", pause=0.05)

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for _attempt in range(50):  # its children may still write
            shutil.rmtree(self._home, ignore_errors=True)
            if not self._home.exists():
                return
            time.sleep(0.1)  # pause of a retry


class Browser:
    """`async with Browser(process) as browser:`, a connection of one event loop; its pages are closed with it."""

    def __init__(self, process: BrowserProcess) -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Page] = {}
        self._contexts: list[str] = []

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        try:
            self._socket = await self._session.ws_connect(self._process.address, max_msg_size=0)
        except BaseException:
            await self._session.close()
            raise
        self._reader = asyncio.ensure_future(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        for context in self._contexts:
            await self.send("Target.disposeBrowserContext", browserContextId=context)
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        await self._session.close()

    async def send(self, method: str, session: str = "", **parameters: Any) -> Any:
        """One command; its result. Raises AssertionError with the browser's own words."""
        number = next(self._numbers)
        self._answers[number] = future = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json({**message, "sessionId": session} if session else message)
        async with asyncio.timeout(60):
            return await future

    async def _read(self) -> None:
        async for message in self._socket:
            data = message.json()
            if "id" in data:
                future = self._answers.pop(data["id"])
                if "error" in data:
                    future.set_exception(AssertionError(f"{data['error']}"))
                else:
                    future.set_result(data["result"])
            elif page := self._pages.get(data.get("sessionId", "")):
                page.event(data["method"], data["params"])

    async def open(
        self,
        address: str,
        *,
        width: int = 1400,
        height: int = 900,
        dark: bool = False,
        reduced_motion: bool = False,
        javascript: bool = True,
        language: str = "",
    ) -> "Page":
        """A new tab that has loaded `address`. `language` is the reader's: `ja`; the browser's own without one."""
        context = (await self.send("Target.createBrowserContext"))["browserContextId"]
        self._contexts.append(context)
        target = await self.send("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            await page.send(f"{domain}.enable")
        await page.size(width, height)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"},
        ]
        await page.send("Emulation.setEmulatedMedia", features=features)
        if language:
            agent = (await self.send("Browser.getVersion"))["userAgent"]
            await page.send("Emulation.setUserAgentOverride", userAgent=agent, acceptLanguage=language)
        if not javascript:
            await page.send("Emulation.setScriptExecutionDisabled", value=True)
        page.requests.clear()
        await page.send("Page.navigate", url=address)
        async with asyncio.timeout(60):
            await page.loaded.wait()
        return page


class Page:
    """A tab. `errors`: console errors, exceptions, violations of the policy; `requests`: every address asked for."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.loaded = asyncio.Event()
        self._trace: list[dict[str, Any]] = []
        self._traced = asyncio.Event()

    async def send(self, method: str, **parameters: Any) -> Any:
        return await self._browser.send(method, self._session, **parameters)

    def event(self, method: str, parameters: dict[str, Any]) -> None:
        match method:
            case "Page.loadEventFired":
                self.loaded.set()
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description") or details["text"])
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(arg.get("value", arg)) for arg in parameters["args"]))
            case "Log.entryAdded":
                entry = parameters["entry"]
                self.errors.append(" ".join((f"{entry['level']}:", entry["text"], entry.get("url", ""))))
            case "Tracing.dataCollected":
                self._trace += parameters["value"]
            case "Tracing.tracingComplete":
                self._traced.set()
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    async def eval(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        result = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def until(self, expression: str, seconds: float = 60.0) -> None:
        """Wait until an expression is true."""
        await until(lambda: self.eval(expression), expression, seconds, pause=0.03)

    async def trace(self, *categories: str) -> None:
        """Begin to record what the browser does."""
        self._trace.clear()
        self._traced.clear()
        await self.send("Tracing.start", traceConfig={"includedCategories": categories})

    async def traced(self) -> list[dict[str, Any]]:
        """Return the events since `trace` (names and times as in Chromium's trace format, in µs)."""
        await self.send("Tracing.end")
        async with asyncio.timeout(60):
            await self._traced.wait()
        return [*self._trace]

    async def key(self, key: str) -> None:
        """Press and release one key: `Tab`, ` `, `ArrowRight`, `a`."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "Home": 36, "End": 35, "Escape": 27}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r", "Tab": ""}.get(key, key if len(key) == 1 else "")
        common = {
            "key": key,
            "code": {" ": "Space"}.get(key, key),
            "windowsVirtualKeyCode": codes.get(key, ord(key[0])),
        }
        await self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    async def move(self, x: float, y: float) -> None:
        await self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.send("Emulation.setDeviceMetricsOverride", **metrics)

    async def screenshot(self, path: Path, *, whole: bool = True) -> Path:
        """A PNG of the page; `whole` goes beyond the window."""
        taken = await self.send(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **await self._clip(whole)
        )
        path.write_bytes(base64.b64decode(taken["data"]))  # noqa: ASYNC240
        return path

    async def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = (await self.send("Page.getLayoutMetrics"))["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}

    async def pdf(self, path: Path) -> Path:
        """As it would be printed."""
        made = await self.send("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
        path.write_bytes(base64.b64decode(made["data"]))  # noqa: ASYNC240
        return path

    async def names(self) -> list[tuple[str, str]]:
        """(role, name) of everything that assistive technology is told about."""
        tree = await self.send("Accessibility.getFullAXTree")
        return [
            (node.get("role", {}).get("value", ""), node.get("name", {}).get("value", ""))
            for node in tree["nodes"]
            if not node.get("ignored")
        ]
