"""axe looks at every page of these tests: it finds what is wrong, and its absence is a failure with CI=true."""

import subprocess
from collections.abc import Iterator

import pytest
from live_page import read_axe, violations

from browser import Browser


@pytest.fixture
def no_axe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine to which pip brings nothing."""
    failed = subprocess.CompletedProcess([], 1, "", "no matching distribution")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    read_axe.cache_clear()
    yield
    read_axe.cache_clear()


@pytest.mark.usefixtures("no_axe")
def test_a_missing_axe_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"tools/get-pypi-file .* no matching distribution"):
        read_axe()


@pytest.mark.usefixtures("no_axe")
def test_a_missing_axe_is_a_warning_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.warns(UserWarning, match="violations are not looked for"):
        assert read_axe() == ""


async def test_axe_finds_a_picture_without_a_text(browser: Browser) -> None:
    if not read_axe():
        pytest.skip("axe-core is missing")
    page = await browser.open("data:text/html,<html lang=en><title>t</title><main><h1>h</h1><img src='data:,'></main>")
    assert any(each.startswith("image-alt") for each in await violations(page))
