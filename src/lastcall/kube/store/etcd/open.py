"""Opening the store on an etcd."""

import os
from typing import TYPE_CHECKING

from lastcall.kube.store.api import StoreError
from lastcall.kube.store.etcd.options import EtcdOptions
from lastcall.kube.store.index import HISTORY, HISTORY_BYTES
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.store.etcd.store import EtcdStore

OLDEST = {(3, 4): 31, (3, 5): 13}
"""From these versions on an answer to a progress request can be trusted (kubernetes etcdfeature/feature_support.go)."""


async def open_etcd(
    options: EtcdOptions, *, world: World, history: int = HISTORY, history_bytes: int = HISTORY_BYTES
) -> "EtcdStore":
    """Return the store on the etcd of `options`. Raises StoreError: the text names the server and the fix."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its errors come as exceptions; on stderr they would come twice
    try:
        # late: an extra, which takes a quarter of a second to import
        from lastcall.kube.store.etcd import messages
        from lastcall.kube.store.etcd.connection import Connection
        from lastcall.kube.store.etcd.layout import Layout
        from lastcall.kube.store.etcd.store import EtcdStore
    except ImportError as error:
        raise StoreError(f"--etcd-servers: {error.name} is not installed; fix: pip install 'lastcall[etcd]'") from None

    connection = Connection(world, options)
    store = EtcdStore(world, connection, Layout(options.prefix), history=history, history_bytes=history_bytes)
    try:
        status = await connection.read(messages.STATUS, messages.StatusRequest())
        check_version(connection.server, status.version)
        await store.load()
    except BaseException:
        await store.close()
        raise
    return store


def check_version(server: str, version: str) -> None:
    """Raise StoreError for an etcd that is too old."""
    try:
        major, minor, patch = (int(part) for part in version.partition("-")[0].split(".")[:3])
    except ValueError:
        return
    if (major, minor) < (3, 4) or patch < OLDEST.get((major, minor), 0):
        raise StoreError(
            f"etcd {server}: is version {version}, whose watches may be behind without telling; fix: use etcd 3.5.13 "
            "or later (3.6, 3.4.31)"
        )
