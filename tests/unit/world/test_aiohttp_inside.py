"""What aiohttp does not promise stands in one package, and the release that is installed has it."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

import lastcall
from lastcall.world.aiohttp_inside import server
from lastcall.world.aiohttp_inside.connector import DialledConnector

SOURCES = Path(lastcall.__file__).parent
PROMISED = {"aiohttp", "aiohttp.web", "aiohttp.abc"}
"""Modules that aiohttp documents by these names."""


def test_a_connector_still_makes_its_connections_by_the_method_that_is_overridden() -> None:
    theirs = inspect.signature(aiohttp.BaseConnector._create_connection)
    assert inspect.iscoroutinefunction(aiohttp.BaseConnector._create_connection)
    assert list(theirs.parameters) == list(inspect.signature(DialledConnector._create_connection).parameters)


async def test_a_connector_still_has_the_loop_and_the_factory_of_protocols() -> None:
    async with aiohttp.TCPConnector() as connector:
        assert connector._loop is not None and callable(connector._factory)


def test_the_parts_of_a_server_are_those_of_the_public_module() -> None:
    from aiohttp import web

    for name in ("BaseRequest", "HTTPException", "Response", "Server", "StreamResponse", "WebSocketResponse"):
        assert getattr(server, name) is getattr(web, name)


@pytest.mark.parametrize("path", [each for each in SOURCES.rglob("*.py") if "aiohttp" in each.read_text()], ids=str)
def test_no_other_module_names_a_private_part_of_aiohttp(path: Path) -> None:
    if path.parent.name != "aiohttp_inside":
        assert [each for each in _imports(ast.parse(path.read_text())) if each not in PROMISED] == []


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
