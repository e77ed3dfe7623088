"""/etc/hostname, /etc/hosts and /etc/resolv.conf of a sandbox, which containers have unless a kubelet mounts its own.

Source: containerd internal/cri/server/podsandbox/sandbox_run_linux.go:setupSandboxFiles, container_create_linux.go:
containerMounts.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from lastcall.cri.api import DNSConfig, Mount, PodSandboxConfig, RuntimeServiceError

_ID = re.compile(r"[0-9a-f]{64}")


def resolv_conf(dns: DNSConfig, hosts_own: str) -> str:
    """`hosts_own` is the machine's, for a Pod that says nothing."""
    if not (dns.servers or dns.searches or dns.options):
        return hosts_own
    lines = [f"search {' '.join(dns.searches)}"] if dns.searches else []
    lines += [f"nameserver {server}" for server in dns.servers]
    lines += [f"options {' '.join(dns.options)}"] if dns.options else []
    return "".join(f"{line}\n" for line in lines)


class PodFilesOnDisk:
    """`lastcall.cri.v1.needs.PodFiles` below `root`."""

    def __init__(self, root: str) -> None:
        self._directory = f"{root}/sandboxes"

    async def mounts(self, pod_sandbox_id: str, config: PodSandboxConfig) -> tuple[Mount, ...]:
        try:
            return await asyncio.to_thread(self._written, pod_sandbox_id, config)
        except OSError as error:
            raise RuntimeServiceError(f"failed to setup sandbox files: {error}") from error

    def _written(self, pod_sandbox_id: str, config: PodSandboxConfig) -> tuple[Mount, ...]:
        directory = Path(self._own(pod_sandbox_id))
        directory.mkdir(0o755, parents=True, exist_ok=True)
        hostname = config.hostname or os.uname().nodename
        texts = {
            "hostname": f"{hostname}\n",
            "hosts": _text("/etc/hosts"),
            "resolv.conf": resolv_conf(config.dns_config, _text("/etc/resolv.conf")),
        }
        for name, text in texts.items():
            path = directory / name
            if not path.exists():  # a container that runs has it already, and may have written to it
                path.write_text(text)
                path.chmod(0o644)
        return tuple(Mount(f"/etc/{name}", str(directory / name)) for name in texts)

    async def keep_only(self, pod_sandbox_ids: Collection[str]) -> None:
        """Remove those of every other sandbox: the process before was killed when it had just forgotten them."""

        def remove() -> None:
            with suppress(FileNotFoundError):
                for each in os.listdir(self._directory):
                    if each not in pod_sandbox_ids:
                        shutil.rmtree(f"{self._directory}/{each}", ignore_errors=True)

        await asyncio.to_thread(remove)

    async def remove(self, pod_sandbox_id: str) -> None:
        if _ID.fullmatch(pod_sandbox_id):
            await asyncio.to_thread(shutil.rmtree, self._own(pod_sandbox_id), ignore_errors=True)

    def owns(self, host_path: str) -> bool:
        return host_path.startswith(f"{self._directory}/")

    def _own(self, pod_sandbox_id: str) -> str:
        if not _ID.fullmatch(pod_sandbox_id):
            raise RuntimeServiceError(f"{pod_sandbox_id!r} is not the id of a sandbox", "NotFound")
        return f"{self._directory}/{pod_sandbox_id}"


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
