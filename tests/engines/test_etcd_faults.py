"""What the store on etcd does when etcd fails, fills up, refuses us or is restarted."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from engines.etcd import Etcd, missing_etcd
from waiting import until

from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.store.api import Compacted, Store, StoreConflict, StoreError, StoreFull, StoreUnsure
from lastcall.kube.store.etcd.open import open_etcd
from lastcall.kube.store.etcd.options import EtcdOptions, etcd_options
from lastcall.kube.store.value import Value
from lastcall.world.world import World

pytestmark = pytest.mark.skipif(bool(missing_etcd()), reason=missing_etcd())


def said(body: Any):
    return lambda revision: Value(orjson.dumps({"metadata": {"resourceVersion": str(revision)}, "data": body}))


def body_of(value: Value) -> Any:
    return orjson.loads(value.encoded())["data"]


@asynccontextmanager
async def opened(options: EtcdOptions) -> AsyncIterator[Store]:
    store = await open_etcd(options, world=World())
    try:
        yield store
    finally:
        await store.close()


def etcdctl(etcd: Etcd, *arguments: str, member: int = 0) -> str:
    environment = {**os.environ, "ETCDCTL_API": "3"}
    done = subprocess.run(
        ["etcdctl", f"--endpoints={etcd.members[member].url}", *arguments],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout


needs_etcdctl = pytest.mark.skipif(
    subprocess.run(["which", "etcdctl"], capture_output=True).returncode != 0, reason="no etcdctl (etcd-client)"
)


async def test_nothing_acknowledged_is_lost_while_members_of_three_go_and_come_back(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", 3) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            acknowledged: dict[str, int] = {}
            doubtful: set[str] = set()
            stop = asyncio.Event()
            refused = 0

            async def write(name: str) -> None:
                nonlocal refused
                number = 0
                while not stop.is_set():
                    key = f"k/{name}-{number:05}"
                    number += 1
                    try:
                        acknowledged[key] = (await store.create(key, said(key))).revision
                    except StoreUnsure:
                        doubtful.add(key)
                    except StoreError:
                        refused += 1
                        await asyncio.sleep(0.05)  # pause of a retry

            seen: list[tuple[int, str]] = []

            async def watch() -> None:
                async with store.watch("k/", 1) as changes:
                    async for change in changes:
                        seen.append((change.revision, change.key))

            watcher = asyncio.ensure_future(watch())
            writers = [asyncio.ensure_future(write(f"w{n}")) for n in range(6)]
            for number in (0, 1, 2):
                done = len(acknowledged)
                await until(lambda done=done: len(acknowledged) > done + 50, "writes go on")
                etcd.members[number].kill()
                done = len(acknowledged)
                await until(lambda done=done: len(acknowledged) > done + 50, "writes go on without a member")
                etcd.members[number].start()
                await asyncio.to_thread(etcd.wait_ready, number)
            stop.set()
            await asyncio.gather(*writers)
            entries, _, _ = await store.list("k/")
            there = {entry.key: entry.revision for entry in entries}
            assert acknowledged.items() <= there.items()
            assert there.keys() - acknowledged.keys() <= doubtful
            await until(lambda: len(seen) >= len(there), "the watch has seen every write")
            watcher.cancel()
            assert [key for _, key in seen] == [key for key, _ in sorted(there.items(), key=lambda item: item[1])]
        async with opened(etcd_options(etcd.servers)) as again:
            entries, _, _ = await again.list("k/")
            assert {entry.key: entry.revision for entry in entries} == there


async def test_a_member_that_hangs_is_left(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", 3) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            await store.create("k/a", said("one"))
            etcd.members[0].pause()
            try:
                async with asyncio.timeout(60):
                    assert await store.get("k/a") is not None
                    first = await _written(store, "k/b")
                    assert await store.get("k/b") == first
            finally:
                etcd.members[0].go_on()


async def _written(store: Store, key: str):
    """What is written once somebody answers."""
    while True:
        try:
            return await store.create(key, said("x"))
        except StoreUnsure:
            if (entry := await store.get(key)) is not None:
                return entry
        except StoreConflict as conflict:
            return conflict.current


async def _told_of(store: Store, word: str) -> str:
    """The error of a read that has the word; the first ones may be of the connection that broke. The last one said."""
    said_last = ""
    for _ in range(100):
        with pytest.raises(StoreError) as told:
            await store.get("k/a")
        if word in (said_last := str(told.value)):
            break
        await asyncio.sleep(0.1)  # pause of a retry
    return said_last


async def test_etcd_may_be_restarted_under_the_store(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd") as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            first = await store.create("k/a", said("one"))
            async with store.watch("k/", first.revision) as changes:
                etcd.members[0].kill()
                with pytest.raises(StoreError):
                    await store.create("k/b", said("two"))
                assert re.match(r"etcd http://\S+: connection refused; fix: start it", await _told_of(store, "refused"))
                with pytest.raises(StoreError):
                    await store.get("k/a")
                assert await store.cached.get("k/a") == first
                etcd.members[0].start()
                await asyncio.to_thread(etcd.wait_ready, 0)
                second = await _written(store, "k/c")
                change = await asyncio.wait_for(anext(changes), 60)
                assert (change.key, change.revision) == ("k/c", second.revision)
            assert [entry.key for entry in (await store.list("k/"))[0]] == ["k/a", "k/c"]


async def test_a_new_store_knows_the_history_that_etcd_has(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            first = await store.create("k/a", said("one"))
            second = await store.update("k/a", first.revision, said("two"))
        async with opened(etcd_options(etcd.servers)) as again:
            async with again.watch("k/", first.revision) as changes:
                assert (await anext(changes)).revision == second.revision
            assert body_of((await again.list("k/", revision=first.revision))[0][0].value) == "one"


@needs_etcdctl
async def test_what_another_compacts_is_gone_for_a_new_store_only(
    tmp_path: Path,
) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            first = await store.create("k/a", said("one"))
            second = await store.update("k/a", first.revision, said("two"))
            last = await store.create("k/b", said("x"))
            etcdctl(etcd, "compaction", str(second.revision))
            # This one saw it all, and goes on to know it.
            async with store.watch("k/", first.revision) as changes:
                assert (await anext(changes)).revision == second.revision
            await store.compact(second.revision)  # again, by us
        async with opened(etcd_options(etcd.servers)) as again:
            with pytest.raises(Compacted):
                async with again.watch("k/", first.revision):
                    pass
            with pytest.raises(Compacted):
                await again.list("k/", revision=first.revision)
            async with again.watch("k/", second.revision) as changes:
                assert (await anext(changes)).revision == last.revision


@needs_etcdctl
async def test_writes_of_others_are_seen_at_once_also_deletions_and_what_is_outside_the_prefix(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            start = await store.revision()
            etcdctl(etcd, "put", "/registry/k/a", '{"data":1}')
            entry = await store.get("k/a")
            assert entry is not None
            assert orjson.loads(entry.value.encoded()) == {
                "data": 1,
                "metadata": {"resourceVersion": str(entry.revision)},
            }
            etcdctl(etcd, "put", "/other/k", "x")
            assert len((await store.list("k/"))[0]) == 1
            assert await store.revision() == start + 2
            etcdctl(etcd, "del", "/registry/k/a")
            assert await store.get("k/a") is None
            async with store.watch("k/", start) as changes:
                kinds = [(await anext(changes)).type, (await anext(changes)).type]
            assert kinds == ["ADDED", "DELETED"]


async def test_what_has_a_time_to_live_vanishes(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            assert store.set_ttl("events/", 1)
            entry = await store.create("events/a/x", said("gone soon"))
            kept = await store.create("k/a", said("stays"))
            async with store.watch("events/", entry.revision) as changes:
                change = await asyncio.wait_for(anext(changes), 60)
            assert (change.type, body_of(change.value)) == ("DELETED", "gone soon")
            assert await store.get("events/a/x") is None
            assert await store.get("k/a") == kept


@needs_etcdctl
async def test_a_full_etcd_refuses_writes_as_full_and_lets_deletions_through(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync", "--quota-backend-bytes=2000000")) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:

            async def fill() -> None:
                for number in range(100):
                    await store.create(f"k/{number:03}", said("x" * 100_000))

            with pytest.raises(StoreFull, match=r"database space exceeded; fix: compact and defragment"):
                await fill()
            entry = await store.get("k/000")
            assert entry is not None
            await store.delete("k/000", entry.revision, said("x"))
            assert await store.get("k/000") is None


async def test_what_cannot_be_read_is_told_with_its_key(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        async with opened(etcd_options(etcd.servers, prefix="/a")) as store:
            await store.create("k/x", said("x"))
        async with opened(etcd_options(etcd.servers, prefix="/a/k")) as below:
            # A key of nobody's layout: its value is there, and is an object.
            assert await below.get("x") is not None


@needs_etcdctl
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("k8s:enc:aescbc:v1:key:abc", "it is encrypted"),
        ("no json", "cannot be read"),
        ("[1]", "is no object"),
        ("k8s\\0rubbish", "cannot be read"),
    ],
)
async def test_a_value_that_nobody_can_read_fails_its_reader_only(tmp_path: Path, value: str, why: str) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync",)) as etcd:
        async with opened(etcd_options(etcd.servers)) as store:
            etcdctl(etcd, "put", "/registry/k/odd", value.replace("\\0", "\x01"))
            await store.create("k/good", said("good"))
            entry = await store.get("k/odd")
            assert entry is not None
            with pytest.raises(StoreError, match=f"etcd: k/odd: .*{why}"):
                entry.value.encoded()
            assert len((await store.list("k/"))[0]) == 2


# -- who we are ------------------------------------------------------------------------------------------------------


class Certificates:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca, self.other = ClusterCA.create(), ClusterCA.create()
        self.ca_file = self._file("ca.crt", self.ca.certificate_pem)
        self.other_file = self._file("other.crt", self.other.certificate_pem)
        self.server = self._pair("server", self.ca.issue_server(["127.0.0.1"]))
        self.client = self._pair("client", self.ca.issue_client("root", []))
        self.stranger = self._pair("stranger", self.other.issue_client("root", []))

    def _file(self, name: str, content: bytes) -> str:
        path = self.directory / name
        path.write_bytes(content)
        path.chmod(0o600)
        return str(path)

    def _pair(self, name: str, pair: tuple[bytes, bytes]) -> tuple[str, str]:
        return self._file(f"{name}.crt", pair[0]), self._file(f"{name}.key", pair[1])

    @property
    def of_etcd(self) -> dict[str, str]:
        return {"cert": self.server[0], "key": self.server[1], "trusted-ca": self.ca_file}


async def test_tls_with_client_certificates_works_and_each_mistake_names_its_fix(tmp_path: Path) -> None:
    own = Certificates(tmp_path)
    with Etcd(tmp_path / "etcd", tls=own.of_etcd, more=("--unsafe-no-fsync",)) as etcd:
        good = {"ca_file": own.ca_file, "certificate_file": own.client[0], "key_file": own.client[1]}
        async with opened(etcd_options(etcd.servers, **good)) as store:
            await store.create("k/a", said("one"))
        for wrong, fix in (
            ({**good, "ca_file": own.other_file}, "--etcd-cafile"),
            ({"ca_file": own.ca_file}, "--etcd-certfile and --etcd-keyfile"),
            ({**good, "certificate_file": own.stranger[0], "key_file": own.stranger[1]}, "--etcd-certfile"),
        ):
            with pytest.raises(StoreError, match=f"etcd {etcd.servers}: .*fix: .*{fix}"):
                async with opened(etcd_options(etcd.servers, **wrong)):
                    pass
        plain = etcd.servers.replace("https", "http")
        with pytest.raises(StoreError, match="fix: "):
            async with opened(etcd_options(plain)):
                pass
    with Etcd(tmp_path / "plain", more=("--unsafe-no-fsync",)) as etcd:
        with pytest.raises(StoreError, match="it closes the connection; fix: write http://"):
            async with opened(etcd_options(etcd.servers.replace("http", "https"), ca_file=own.ca_file)):
                pass


@needs_etcdctl
async def test_users_and_passwords_of_etcd(tmp_path: Path) -> None:
    with Etcd(tmp_path / "etcd", more=("--unsafe-no-fsync", "--auth-token-ttl=2")) as etcd:
        for command in (
            "user add root:secret", "role add root", "user grant-role root root",
            "user add kube:pass", "role add kube", "role grant-permission kube readwrite --prefix=true /registry/",
            "user grant-role kube kube", "auth enable",
        ):  # fmt: skip
            etcdctl(etcd, *command.split())
        async with opened(etcd_options(etcd.servers, user="kube:pass")) as store:
            await store.create("k/a", said("one"))
            etcdctl(etcd, "--user=root:secret", "put", "/registry/k/b", '{"data":"two"}')
            assert await store.get("k/b") is not None
            etcd.members[0].kill()  # a token is known to one run of etcd only
            etcd.members[0].start()
            await asyncio.to_thread(etcd.wait_ready, 0)
            assert await store.get("k/b") is not None
            await store.create("k/c", said("three"))
        for user, prefix, why in (
            ("kube:wrong", "/registry", "wrong user or password; fix: correct --etcd-user"),
            ("kube:pass", "/elsewhere", "permission denied; fix: grant the user"),
            ("", "/registry", "it wants a user; fix: give --etcd-user NAME:PASSWORD"),
        ):
            with pytest.raises(StoreError, match=why):
                async with opened(etcd_options(etcd.servers, user=user, prefix=prefix)):
                    pass


async def test_nobody_there_is_told_with_the_fix() -> None:
    with pytest.raises(
        StoreError, match=r"etcd http://127\.0\.0\.1:9: connection refused; fix: start it, or name another"
    ):
        async with opened(etcd_options("http://127.0.0.1:9")):
            pass
