"""`import lastcall` and the pytest plugin load nothing that a program without a cluster would pay for."""

import subprocess
import sys

import pytest

import lastcall

PROBE = "import sys; {code}; print(*sorted(m for m in sys.modules if m.split('.')[0] in {names}))"
HEAVY = ("lastcall", "aiohttp", "asyncio", "yaml", "rich", "click", "orjson")


def loaded(code: str) -> set[str]:
    probe = PROBE.format(code=code, names=HEAVY)
    return set(subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.loopback
def test_the_package_itself_loads_its_version_alone() -> None:
    assert loaded("import lastcall; lastcall.__version__") == {"lastcall", "lastcall._version"}


@pytest.mark.loopback
def test_the_plugin_loads_itself_alone() -> None:
    added = loaded("import pytest, lastcall.testing.plugin") - loaded("import pytest")
    assert added == {"lastcall", "lastcall._version", "lastcall.testing", "lastcall.testing.plugin"}


@pytest.mark.parametrize("name", lastcall.__all__)
def test_every_name_of_the_api_is_there(name: str) -> None:
    assert getattr(lastcall, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'lastcall' has no attribute 'Clutser'"):
        _ = lastcall.Clutser
