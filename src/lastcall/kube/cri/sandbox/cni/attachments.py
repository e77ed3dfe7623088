"""What was asked of plugins, on disk before they are asked: the next node process can undo it with the same words.

One JSON file a sandbox (`attachment-<id>.json`, 0600, replaced whole), as libcni's cache has it, and a file to lock.
"""

import os
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from lastcall.kube.cri.sandbox.cni.conf import NetworkConfiguration
from lastcall.kube.cri.sandbox.cni.rules import Attachment
from lastcall.kube.cri.sandbox.cni.versions import VERSIONS
from lastcall.kube.cri.sandbox.records import Records

_KIND = "attachment"


class Attachments:
    """The attachments of one node. `load` first."""

    def __init__(self, directory: str, *, durable: bool = False) -> None:
        self._directory = directory
        self._records = Records(directory, durable=durable)
        self._known: dict[str, Attachment] = {}

    def load(self) -> None:
        """Read what an earlier process wrote. A file that cannot be understood is reported and set aside."""
        self._records.clear_leftovers()
        for identity, value in self._records.load(_KIND):
            if value is None:
                continue
            try:
                self._known[identity] = _decode(value)
            except Exception as error:
                self._records.set_aside(_KIND, identity, error)

    def all(self) -> list[Attachment]:
        return list(self._known.values())

    def find(self, container_id: str) -> Attachment | None:
        return self._known.get(container_id)

    def save(self, attachment: Attachment) -> None:
        """Save an attachment, before the first plugin is asked and when the last has answered. Raises OSError."""
        self._known[attachment.container_id] = attachment
        self._records.save(_KIND, attachment.container_id, asdict(attachment))

    def forget(self, container_id: str) -> None:
        """Forget an attachment of which nothing is left."""
        self._known.pop(container_id, None)
        self._records.remove(_KIND, container_id)
        with suppress(FileNotFoundError):
            os.unlink(self.lock_path(container_id))

    def lock_path(self, container_id: str) -> str:
        os.makedirs(self._directory, 0o700, exist_ok=True)
        return f"{self._directory}/lock-{container_id}"


def _decode(value: dict[str, Any]) -> Attachment:
    if value["version"] not in VERSIONS:
        raise ValueError(f"version {value['version']!r}")
    network = NetworkConfiguration(**value["network"])
    network = replace(network, versions=tuple(network.versions), plugins=tuple(network.plugins))
    args = tuple((str(name), str(text)) for name, text in value["args"])
    return Attachment(**{**value, "network": network, "args": args})
