"""Which sandboxes are attached, and who deletes what: `CNINetwork` with small programs in place of plugins."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.cri.api import PodSandboxConfig, PodSandboxMetadata, RuntimeServiceError
from lastcall.kube.cri.sandbox.cni import network as module
from lastcall.kube.cri.sandbox.cni.network import CNINetwork
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

PLUGIN = f"""#!{sys.executable} -IS
import json, os, sys, time
here, verb, request = os.path.dirname(sys.argv[0]), os.environ["CNI_COMMAND"], json.load(sys.stdin)
valid = [each["containerID"] for each in request.get("cni.dev/valid-attachments", ())]
with open(f"{{here}}/log", "a") as log:
    log.write(json.dumps([verb, os.environ.get("CNI_CONTAINERID", valid)]) + "\\n")
while os.path.exists(f"{{here}}/waits-{{verb}}"):
    time.sleep(0.01)
if os.path.exists(f"{{here}}/fails-{{verb}}"):
    print(json.dumps({{"code": 100, "msg": f"no {{verb}} today"}}))
    sys.exit(1)
if verb == "ADD":
    address = open(f"{{here}}/address").read()
    print(json.dumps({{"cniVersion": "1.1.0", "ips": [{{"address": address}}] if address else []}}))
"""
POD = PodSandboxConfig(PodSandboxMetadata("web", "uid-1", "shop"))


class Node:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "net.conf").write_text('{"cniVersion": "1.1.0", "name": "net", "type": "plugin"}')
        (directory / "plugin").write_text(PLUGIN)
        (directory / "plugin").chmod(0o755)
        (directory / "address").write_text("10.9.0.2/24")
        self.network = self.process()

    def process(self) -> CNINetwork:
        """A node process that starts."""
        here = str(self.directory)
        return CNINetwork(World(), here, f"{here}/state", bin_dirs=(here,))

    async def attach(self, name: str = "s1") -> str:
        return await self.network.attach(name, -1, "uid-1", POD)

    def switch(self, name: str, on: bool) -> None:
        path = self.directory / name
        path.write_text("") if on else path.unlink()

    @property
    def calls(self) -> list[list]:
        log = self.directory / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def remembered(self) -> list[str]:
        directory = self.directory / "state/attachments"
        return sorted(os.listdir(directory)) if directory.exists() else []


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Without the kernel's part."""
    monkeypatch.setattr(module, "_give_path", lambda fd, path: None)
    monkeypatch.setattr(module, "_take_path", lambda path: None)
    monkeypatch.setattr(module, "_write_sysctl", lambda fd, name, value: None)
    return Node(tmp_path)


async def test_a_sandbox_is_added_once_and_deleted_once(node: Node):
    assert await node.attach() == "10.9.0.2"
    assert await node.attach() == "10.9.0.2", "asked again it keeps its address"
    await node.network.detach("s1", "10.9.0.2")
    await node.network.detach("s1", "10.9.0.2")
    await node.network.detach("never-attached")
    assert (node.calls, node.remembered) == ([["ADD", "s1"], ["DEL", "s1"]], [])


async def test_an_add_that_fails_is_deleted_and_nothing_is_remembered(node: Node):
    node.switch("fails-ADD", on=True)
    said = r'^failed to setup network for sandbox "s1": plugin type="plugin" name="net" failed \(add\): no ADD today$'
    with pytest.raises(RuntimeServiceError, match=said):
        await node.attach()
    await node.network.detach("s1")
    assert (node.calls, node.remembered) == ([["ADD", "s1"], ["DEL", "s1"]], [])


async def test_a_result_without_an_address_is_a_failed_add(node: Node):
    (node.directory / "address").write_text("")
    with pytest.raises(RuntimeServiceError, match='failed to find network info for sandbox "s1"'):
        await node.attach()
    assert (node.calls, node.remembered) == ([["ADD", "s1"], ["DEL", "s1"]], [])


async def test_what_a_failed_add_leaves_is_deleted_when_the_plugin_can(node: Node, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    for name in ("fails-ADD", "fails-DEL"):
        node.switch(name, on=True)
    with pytest.raises(RuntimeServiceError, match="no ADD today"):
        await node.attach()
    assert len(node.remembered) == 2, "the attachment and its lock"
    running = asyncio.ensure_future(node.network.run())
    await until(lambda: node.calls.count(["DEL", "s1"]) >= 3)
    node.switch("fails-DEL", on=False)
    await until(lambda: not node.remembered)
    await end(running)


async def test_a_delete_that_fails_is_the_caller_s_to_repeat(node: Node):
    await node.attach()
    node.switch("fails-DEL", on=True)
    said = r'^failed to destroy network for sandbox "s1": plugin type="plugin" name="net" failed \(delete\): no DEL'
    for _ in range(2):
        with pytest.raises(RuntimeServiceError, match=said):
            await node.network.detach("s1")
    await node.network.collect()
    assert node.calls == [["ADD", "s1"], ["DEL", "s1"], ["DEL", "s1"], ["GC", ["s1"]]]
    node.switch("fails-DEL", on=False)
    await node.network.detach("s1")
    assert node.remembered == []


async def test_a_cancelled_add_is_deleted_at_once(node: Node):
    running = asyncio.ensure_future(node.network.run())
    await until(lambda: ["GC", []] in node.calls)
    node.switch("waits-ADD", on=True)
    call = asyncio.ensure_future(node.attach())
    await until(lambda: ["ADD", "s1"] in node.calls)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await node.network.detach("s1")
    await until(lambda: node.calls[-1] == ["DEL", "s1"] and not node.remembered)
    await end(running)


async def test_the_next_process_keeps_what_is_adopted_and_deletes_the_rest(node: Node):
    await node.attach("kept")
    await node.attach("lost")
    node.network = node.process()
    await node.network.adopt("kept", "10.9.0.2")
    await node.network.adopt("of-another-network", "10.244.0.2")
    await node.network.collect()
    assert node.calls[2:] == [["DEL", "lost"], ["GC", ["kept"]]]
    (node.directory / "net.conf").write_text("broken meanwhile")
    await node.network.detach("kept", "10.9.0.2")
    await node.network.detach("of-another-network", "10.244.0.2")
    assert node.calls[4:] == [["DEL", "kept"]], "with the words of its ADD, whatever the directory says now"
    assert node.remembered == []


async def test_the_status_says_why_nothing_could_be_attached(node: Node, monkeypatch: pytest.MonkeyPatch):
    for _ in range(3):
        assert await node.network.status() == ""
    assert node.calls == [["STATUS", []]], "not more often than every 5 s"
    monkeypatch.setattr(module, "STATUS_SECONDS", 0.0)
    node.switch("fails-STATUS", on=True)
    assert await node.network.status() == 'plugin type="plugin" name="net" failed (status): no STATUS today'
    node.switch("plugin", on=False)
    assert 'failed to find plugin "plugin" in path' in await node.network.status()
    node.switch("net.conf", on=False)
    assert "cni plugin not initialized" in await node.network.status()


async def end(task: "asyncio.Task[None] | asyncio.Future[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
