"""Sandboxes and containers as records: what the next node process has to know of them."""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lastcall.kube.cri.api import ContainerConfig, ContainerState, PodSandboxConfig, PodSandboxState
from lastcall.kube.cri.sandbox.objects import Container, Sandbox
from lastcall.kube.cri.sandbox.records import Records, decode

log = logging.getLogger(__name__)


class ObjectRecords:
    """`save_…` with every change, `load_…` once at the start."""

    def __init__(self, directory: str, *, durable: bool = False) -> None:
        self._files = Records(directory, durable=durable)

    @property
    def any(self) -> bool:
        """Return whether an earlier process left some."""
        return self._files.any

    def load_sandboxes(self) -> dict[str, Sandbox]:
        """Load by id, the oldest first. One whose record cannot be read is left out: the shim removes it."""
        self._files.clear_leftovers()
        found = []
        for identity, value in self._files.load("sandbox"):
            if value is None:
                continue
            try:
                sandbox = Sandbox(
                    identity,
                    decode(PodSandboxConfig, value["config"]),
                    decode(int, value["createdAt"]),
                    PodSandboxState(value["state"]),
                    decode(str, value["ip"]),
                    decode(bool, value["attached"]),
                )
            except (KeyError, TypeError, ValueError) as error:
                self._files.set_aside("sandbox", identity, error)
                continue
            found.append(sandbox)
        return {sandbox.id: sandbox for sandbox in sorted(found, key=lambda s: s.created_at)}

    def load_containers(self, sandboxes: Mapping[str, Sandbox], state_dir: str) -> dict[str, Container]:
        """Load the containers likewise; `state_dir` holds a directory for each."""
        status = dict(self._files.load("status"))
        found = []
        for identity, value in self._files.load("container"):
            if value is None:
                continue
            try:
                container = Container(
                    id=identity,
                    sandbox=sandboxes[value["sandboxId"]],
                    config=decode(ContainerConfig, value["config"]),
                    created_at=decode(int, value["createdAt"]),
                    image_ref=decode(str, value["imageRef"]),
                    directory=os.path.join(state_dir, identity),
                    spec={"logPath": decode(str, value["logPath"])},
                    stop_signal=decode(int, value["stopSignal"]),
                )
                self._restore(container, status.pop(identity, {}))
            except (KeyError, TypeError, ValueError) as error:
                self._files.set_aside("container", identity, error)
                continue
            found.append(container)
        for identity in status:
            self._files.remove("status", identity)
        return {container.id: container for container in sorted(found, key=lambda c: c.created_at)}

    @staticmethod
    def _restore(container: Container, status: dict[str, Any] | None) -> None:
        if status is None:  # it was started and perhaps it ended: only a shim knows
            status = {"startedAt": container.created_at}
        container.started_at = decode(int, status.get("startedAt", 0))
        container.finished_at = decode(int, status.get("finishedAt", 0))
        container.exit_code = decode(int, status.get("exitCode", 0))
        container.reason = decode(str, status.get("reason", ""))
        container.message = decode(str, status.get("message", ""))
        if container.finished_at:
            container.state = ContainerState.CONTAINER_EXITED
            container.settled.set()
            container.ended.set()
        elif container.started_at:
            container.state = ContainerState.CONTAINER_UNKNOWN

    def save_sandbox(self, sandbox: Sandbox) -> None:
        state = {
            "config": sandbox.config,
            "createdAt": sandbox.created_at,
            "state": int(sandbox.state),
            "ip": sandbox.ip,
            "attached": sandbox.attached,
        }
        # A full disk must not take a working sandbox down; only a later adoption would miss it.
        self._try_to_save("sandbox", sandbox.id, state)

    def save_container(self, container: Container) -> None:
        state = {
            "config": replace(container.config, envs=(), command=(), args=()),
            "sandboxId": container.sandbox.id,
            "createdAt": container.created_at,
            "imageRef": container.image_ref,
            "stopSignal": container.stop_signal,
            "logPath": container.spec["logPath"],
        }
        self._files.save("container", container.id, state)

    def save_status(self, container: Container) -> None:
        state = {
            "startedAt": container.started_at,
            "finishedAt": container.finished_at,
            "exitCode": container.exit_code,
            "reason": container.reason,
            "message": container.message,
        }
        self._try_to_save("status", container.id, state)

    def _try_to_save(self, kind: str, identity: str, state: dict[str, Any]) -> None:
        try:
            self._files.save(kind, identity, state)
        except OSError as error:
            log.warning("the record of %s %s cannot be written: %s", kind, identity, error)

    def forget_sandbox(self, sandbox_id: str) -> None:
        self._files.remove("sandbox", sandbox_id)

    def forget_container(self, container_id: str) -> None:
        self._files.remove("container", container_id)
        self._files.remove("status", container_id)
