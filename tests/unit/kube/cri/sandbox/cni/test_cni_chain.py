"""Chains of plugins that are small programs: they write down what they are told."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import until

from lastcall.kube.cri.sandbox.cni.attachments import Attachments
from lastcall.kube.cri.sandbox.cni.chain import Chain
from lastcall.kube.cri.sandbox.cni.conf import NetworkConfiguration
from lastcall.kube.cri.sandbox.cni.plugin import Plugins, lock_file
from lastcall.kube.cri.sandbox.cni.rules import Attachment, CNIError
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

PROGRAM = f"""#!{sys.executable} -IS
import json, os, sys, time
name, verb, request = os.path.basename(sys.argv[0]), os.environ["CNI_COMMAND"], json.load(sys.stdin)
here = os.path.dirname(sys.argv[0])
with open(f"{{here}}/log", "a") as log:
    told = {{key: value for key, value in os.environ.items() if key not in ("LC_CTYPE",)}}
    log.write(json.dumps({{"plugin": name, "verb": verb, "request": request, "environment": told}}) + "\\n")
if os.path.exists(f"{{here}}/{{name}}-sleeps-{{verb}}"):
    with open(f"{{here}}/pid", "w") as file:
        file.write(str(os.getpid()))
    time.sleep(600)
if os.path.exists(f"{{here}}/{{name}}-fails-{{verb}}"):
    print(open(f"{{here}}/{{name}}-fails-{{verb}}").read())
    sys.exit(1)
if verb == "VERSION":
    print(json.dumps({{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}}))
if verb == "ADD":
    result = request.get("prevResult") or {{"cniVersion": request["cniVersion"], "ips": [{{"address": "10.9.0.2/24"}}]}}
    print(json.dumps({{**result, "seen": [*result.get("seen", []), name]}}))
"""


class Bench:
    """Plugins `one` and `two` in a directory, and what they wrote down."""

    def __init__(self, directory: Path, seconds: float = 60.0) -> None:
        self.directory = directory
        for name in ("one", "two"):
            (directory / name).write_text(PROGRAM)
            (directory / name).chmod(0o755)
        self.plugins = Plugins(World(), (str(directory),), seconds)
        self.chain = Chain(self.plugins)

    def network(self, *versions: str) -> NetworkConfiguration:
        return NetworkConfiguration("net", versions or ("1.0.0",), ({"type": "one"}, {"type": "two"}))

    def attachment(self, version: str = "1.0.0", **more: object) -> Attachment:
        values = {"network": self.network(version), "version": version, **more}
        return Attachment("c1", "/proc/self/ns/net", args=(("A", "b"),), capability_args={}, **values)

    def fails(self, name: str, verb: str, said: str) -> None:
        (self.directory / f"{name}-fails-{verb}").write_text(said)

    def sleeps(self, name: str, verb: str) -> None:
        (self.directory / f"{name}-sleeps-{verb}").write_text("")

    @property
    def calls(self) -> list[dict]:
        log = self.directory / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    @property
    def order(self) -> list[tuple[str, str]]:
        return [(call["plugin"], call["verb"]) for call in self.calls]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.rule("node-semantics 22.2/cni")
async def test_an_add_goes_in_order_and_each_plugin_is_told_the_result_before(bench: Bench):
    result = await bench.chain.add(bench.attachment())
    assert bench.order == [("one", "ADD"), ("two", "ADD")]
    assert result["seen"] == ["one", "two"]
    first, second = bench.calls
    assert "prevResult" not in first["request"]
    assert second["request"]["prevResult"]["seen"] == ["one"]
    assert first["environment"]["CNI_NETNS"] == "/proc/self/ns/net"
    assert set(first["environment"]) == {
        "PATH", "CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"}  # fmt: skip


async def test_an_add_ends_with_the_first_plugin_that_fails(bench: Bench):
    bench.fails("one", "ADD", '{"code": 100, "msg": "no room"}')
    with pytest.raises(CNIError, match=r'^plugin type="one" failed \(add\): no room$') as caught:
        await bench.chain.add(bench.attachment())
    assert (caught.value.code, bench.order) == (100, [("one", "ADD")])


@pytest.mark.rule("node-semantics 22.2/cni")
async def test_a_delete_goes_in_reverse_with_the_result_of_the_add(bench: Bench):
    await bench.chain.delete(bench.attachment(result={"ips": []}))
    assert bench.order == [("two", "DEL"), ("one", "DEL")]
    assert [call["request"]["prevResult"] for call in bench.calls] == [{"ips": []}] * 2


async def test_a_delete_of_an_add_that_failed_asks_all_plugins_and_knows_no_result(bench: Bench):
    await bench.chain.delete(bench.attachment())
    assert bench.order == [("two", "DEL"), ("one", "DEL")]
    assert all("prevResult" not in call["request"] for call in bench.calls)


async def test_a_delete_that_fails_stops_the_list(bench: Bench):
    bench.fails("two", "DEL", '{"code": 101, "msg": "busy"}')
    with pytest.raises(CNIError, match=r'plugin type="two" failed \(delete\): busy'):
        await bench.chain.delete(bench.attachment())
    assert bench.order == [("two", "DEL")]


async def test_what_a_delete_does_not_find_is_deleted(bench: Bench):
    bench.fails("two", "DEL", '{"code": 3, "msg": "container c1 not found"}')
    await bench.chain.delete(bench.attachment())
    assert bench.order == [("two", "DEL"), ("one", "DEL")]


async def test_a_network_namespace_that_is_gone_is_told_as_nothing(bench: Bench, tmp_path: Path):
    bench.fails("two", "DEL", '{"code": 100, "msg": "open netns: no such file or directory"}')
    (tmp_path / "no-mount").write_text("")
    for path in ("/nowhere/netns", str(tmp_path / "no-mount")):
        await bench.chain.delete(replace(bench.attachment(), netns=path))
    assert [call["environment"]["CNI_NETNS"] for call in bench.calls] == [""] * 4


async def test_a_plugin_that_is_not_there_fails_by_name(bench: Bench):
    (bench.directory / "two").unlink()
    with pytest.raises(CNIError, match=r'plugin type="two" failed \(add\): failed to find plugin "two" in path \[/'):
        await bench.chain.add(bench.attachment())


async def test_a_plugin_that_takes_too_long_is_killed(tmp_path: Path):
    bench = Bench(tmp_path, seconds=2.0)
    bench.sleeps("one", "ADD")
    with pytest.raises(CNIError, match=r"netplugin did not end within 2 s and was killed"):
        await bench.chain.add(bench.attachment())
    assert not alive(bench)


async def test_a_cancelled_add_leaves_no_plugin_alive(bench: Bench):
    bench.sleeps("two", "ADD")
    call = asyncio.ensure_future(bench.chain.add(bench.attachment()))
    await until(lambda: (bench.directory / "pid").exists() and (bench.directory / "pid").read_text())
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert call.cancelled()
    assert not alive(bench)


async def test_versions_are_asked_for_only_where_there_is_a_choice(bench: Bench):
    assert await bench.chain.version(bench.network("1.1.0")) == "1.1.0"
    assert bench.order == []
    for _ in range(2):
        assert await bench.chain.version(bench.network("1.1.0", "1.0.0", "0.4.0")) == "1.0.0"
    assert bench.order == [("one", "VERSION"), ("two", "VERSION")], "and once"


@pytest.mark.rule("node-semantics 22.2/cni")
async def test_garbage_collection_and_status_are_for_versions_that_have_them(bench: Bench):
    for version in ("1.0.0", "1.1.0"):
        await bench.chain.collect(bench.network(version), version, [bench.attachment()])
        await bench.chain.status(bench.network(version), version)
    assert bench.order == [("one", "GC"), ("two", "GC"), ("one", "STATUS"), ("two", "STATUS")]
    assert bench.calls[0]["request"]["cni.dev/valid-attachments"] == [{"containerID": "c1", "ifname": "eth0"}]
    bench.fails("one", "GC", '{"msg": "a"}')
    bench.fails("two", "GC", '{"msg": "b"}')
    with pytest.raises(CNIError, match=r'type="one" failed \(gc\): a; plugin type="two" failed \(gc\): b'):
        await bench.chain.collect(bench.network("1.1.0"), "1.1.0", [])
    bench.fails("two", "STATUS", '{"code": 50, "msg": "no daemon"}')
    with pytest.raises(CNIError, match=r'type="two" failed \(status\): no daemon') as caught:
        await bench.chain.status(bench.network("1.1.0"), "1.1.0")
    assert caught.value.code == 50


async def test_disable_gc_is_obeyed(bench: Bench):
    await bench.chain.collect(replace(bench.network("1.1.0"), disable_gc=True), "1.1.0", [])
    assert bench.order == []


async def test_the_lock_is_the_plugin_s_as_long_as_it_lives(bench: Bench):
    """A node process that dies leaves its plugin running: the next one's call has to wait for that."""
    bench.sleeps("one", "ADD")
    path = str(bench.directory / "lock")
    with lock_file(path) as first:
        await bench.plugins.lock(first)
        call = asyncio.ensure_future(bench.chain.add(bench.attachment(), first))
        await until(lambda: (bench.directory / "pid").exists() and (bench.directory / "pid").read_text())
    with lock_file(path) as second:  # the first process' own descriptor is closed
        waiting = asyncio.ensure_future(bench.plugins.lock(second))
        await asyncio.sleep(0.1)  # it must still wait: nothing to wait for
        assert not waiting.done()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.wait_for(waiting, 30)


def test_an_attachment_is_known_to_the_next_process(bench: Bench, tmp_path: Path):
    before = Attachments(str(tmp_path / "kept"))
    known = bench.attachment(result={"ips": []})
    before.save(bench.attachment())
    before.save(known)
    assert [file.stat().st_mode & 0o777 for file in (tmp_path / "kept").iterdir()] == [0o600]
    after = Attachments(str(tmp_path / "kept"))
    after.load()
    assert after.all() == [known]
    after.forget("c1")
    after.forget("c1")
    assert (after.find("c1"), os.listdir(tmp_path / "kept")) == (None, [])


def test_a_damaged_attachment_is_passed_over(tmp_path: Path):
    (tmp_path / "attachment-c1.json").write_text('{"version": "x"}')
    known = Attachments(str(tmp_path))
    known.load()
    assert (known.all(), os.listdir(tmp_path)) == ([], ["attachment-c1.json.unreadable"])


def alive(bench: Bench) -> bool:
    return os.path.exists(f"/proc/{(bench.directory / 'pid').read_text()}")
