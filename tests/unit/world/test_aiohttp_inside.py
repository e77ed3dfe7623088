"""What aiohttp does not promise stands in one package, and the release that is installed has it."""

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey

import lastcall
from lastcall.apiserver.auth.pki import ClusterCA
from lastcall.world.aiohttp_inside import server
from lastcall.world.aiohttp_inside.connector import DialledConnector, KeptConnections
from lastcall.world.aiohttp_inside.session import send_once

SOURCES = Path(lastcall.__file__).parent
PROMISED = {"aiohttp", "aiohttp.web", "aiohttp.abc"}
"""Modules that aiohttp documents by these names."""


def test_a_connector_still_makes_its_connections_by_the_method_that_is_overridden() -> None:
    theirs = inspect.signature(aiohttp.BaseConnector._create_connection)
    assert inspect.iscoroutinefunction(aiohttp.BaseConnector._create_connection)
    assert list(theirs.parameters) == list(inspect.signature(DialledConnector._create_connection).parameters)


def test_a_request_still_has_what_its_connection_is_kept_by() -> None:
    connect = inspect.signature(aiohttp.BaseConnector.connect)
    assert list(connect.parameters) == list(inspect.signature(KeptConnections.connect).parameters)
    assert "ssl" in getattr(ConnectionKey, "_fields", ())
    assert isinstance(inspect.getattr_static(ResponseHandler, "should_close"), property)


async def test_a_connector_still_has_the_loop_and_the_factory_of_protocols() -> None:
    async with aiohttp.TCPConnector() as connector:
        assert connector._loop is not None and callable(connector._factory)


async def test_a_session_still_has_what_keeps_it_from_repeating_a_request() -> None:
    async with aiohttp.ClientSession() as session:
        assert session._retry_connection is True
        assert send_once(session)._retry_connection is False


def test_the_parts_of_a_server_are_those_of_the_public_module() -> None:
    from aiohttp import web

    for name in ("BaseRequest", "HTTPException", "Response", "Server", "StreamResponse", "WebSocketResponse"):
        assert getattr(server, name) is getattr(web, name)


@pytest.mark.parametrize("path", [each for each in SOURCES.rglob("*.py") if "aiohttp" in each.read_text()], ids=str)
def test_no_other_module_names_a_private_part_of_aiohttp(path: Path) -> None:
    if path.parent.name != "aiohttp_inside":
        assert [each for each in _imports(ast.parse(path.read_text())) if each not in PROMISED] == []


@pytest.mark.parametrize("path", [each for each in SOURCES.rglob("*.py") if "aiohttp" in each.read_text()], ids=str)
def test_no_other_module_imports_aiohttp_by_its_own_name(path: Path) -> None:
    """The first one would read the machine's authorities twice, by which a start took 40 ms more."""
    if path.parent.name != "aiohttp_inside":
        assert [each for each in _imported(ast.parse(path.read_text())) if each in ("aiohttp", "aiohttp.abc")] == []


def _imported(tree: ast.AST) -> Iterator[str]:
    """By statements that run when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names if each.name not in ("web", "WSMsgType")]
            yield from [str(node.module)] if names else []


@pytest.mark.parametrize(
    "module", ["cluster.embedded", "client.lost", "streaming.upgrade", "node.prober.dialer", "apiserver.http"]
)
def test_whichever_module_comes_first_aiohttp_reads_no_authorities_of_the_machine(module: str, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(ClusterCA.create().certificate_pem)
    code = (
        "import ssl; own, read = ssl.SSLContext.load_default_certs, []\n"
        "def load(self, *purpose): own(self, *purpose); read.append(self.cert_store_stats()['x509_ca'])\n"
        "ssl.SSLContext.load_default_certs = load\n"
        f"import lastcall.{module}, lastcall.client.http, sys; print('aiohttp' in sys.modules, sum(read))\n"
        "ssl.create_default_context(); print(read[-1])"
    )
    environment = {**os.environ, "SSL_CERT_FILE": str(tmp_path / "ca.pem"), "SSL_CERT_DIR": os.devnull}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "0", "1"]


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.split(".")[0] == "aiohttp")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aiohttp":
            yield str(node.module)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and _is_aiohttp(node.value):
            yield f"aiohttp.….{node.attr}"


def _is_aiohttp(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "aiohttp"
