"""Which API servers there are, for those who ask the API: each keeps a Lease `kube-system/apiserver-…`; those that
nobody has renewed for an hour are deleted.

Source: apiserver/pkg/server/config.go (APIServerID), pkg/controlplane/controller/apiserverleasegc.
"""

import base64
import hashlib
from contextlib import suppress
from datetime import datetime, timedelta

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import LEASES
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.client.api import Client
from lastcall.world.clock import rfc3339_micro

NAMESPACE = "kube-system"
LEASE_SECONDS = 3600
IDENTITY_LABEL = "apiserver.kubernetes.io/identity"


class Identity:
    """One server, on `host`, that others reach at `address` (HOST:PORT); `process` differs from the one before."""

    def __init__(self, host: str, address: str, process: str) -> None:
        digest = hashlib.sha256(f"{host} {address}".encode()).digest()[:16]
        self.name = "apiserver-" + base64.b32encode(digest).decode().rstrip("=").lower()
        self._host, self._address, self._process = host, address, process

    async def keep(self, client: Client, moment: datetime) -> None:
        """Renew its Lease, and delete those that are over. Raises StatusError."""
        wanted = self.lease(moment)
        leases = {each["metadata"]["name"]: each for each in (await client.list(LEASES, NAMESPACE)).items}
        if (found := leases.get(self.name)) is None:
            await client.create(LEASES, wanted, NAMESPACE)
        else:
            await client.update(LEASES, {**found, "spec": wanted["spec"]}, NAMESPACE)
        for name in [name for name, each in leases.items() if name != self.name and expired(each, moment)]:
            with suppress(StatusError):  # another server was first; else in the next round
                await client.delete(LEASES, name, NAMESPACE)

    def lease(self, moment: datetime) -> Object:
        """Return the Lease as it is to be now."""
        labels = {IDENTITY_LABEL: "kube-apiserver", "kubernetes.io/hostname": self._host}
        annotations = {"kubernetes.io/peer-advertise-address": self._address}
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.name, "namespace": NAMESPACE, "labels": labels, "annotations": annotations},
            "spec": {
                "holderIdentity": f"{self.name}_{self._process}",
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": rfc3339_micro(moment),
            },
        }


def expired(found: Object, moment: datetime) -> bool:
    """Return whether this is the Lease of an API server that is gone. One without a renewTime is left alone."""
    spec = found.get("spec") or {}
    if IDENTITY_LABEL not in (found["metadata"].get("labels") or {}) or not spec.get("renewTime"):
        return False
    return moment > parse_rfc3339(spec["renewTime"]) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
