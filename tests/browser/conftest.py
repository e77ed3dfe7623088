"""Pages in a real browser: Debian's chromium, headless. With CI=true its absence fails, elsewhere tests skip."""

import os
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from story_samples import samples

from browser import Browser, BrowserProcess, Page, find_browser
from lastcall.ui.saved_stories import html_page


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name of a sample → address of its page."""
    directory = tmp_path_factory.mktemp("pages")
    addresses = {}
    for name, endings in samples().items():
        path = directory / f"{name}.html"
        path.write_text(html_page(endings, kubernetes_version="1.36", lastcall_version="0.1.0"), "utf-8")
        addresses[name] = path.as_uri()
    return addresses


@pytest.fixture(scope="session")
def chromium() -> Iterator[BrowserProcess]:
    """One for all tests."""
    if find_browser() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("chromium is not on PATH: apt-get install chromium")
        pytest.skip("chromium is not on PATH")
    with BrowserProcess() as process:
        yield process


@pytest.fixture
async def browser(chromium: BrowserProcess) -> AsyncIterator[Browser]:
    """A test's own connection to it."""
    async with Browser(chromium) as connected:
        yield connected


@pytest.fixture
def open_page(browser: Browser, written: dict[str, str]) -> Callable[..., object]:
    """`await open_page("sigkill", dark=True)`: the page in a tab, which has said nothing bad so far."""

    async def open_page(name: str, **options: object) -> Page:
        page = await browser.open(written[name], **options)
        if options.get("javascript", True):
            await page.until("!!document.querySelector('.lanes')")
        assert page.errors == []
        return page

    return open_page
