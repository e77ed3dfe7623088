"""The verbs over a list of plugins: ADD in order, DEL in reverse, GC and STATUS where the version has them.

Source: CNI specification 1.1 section 3; libcni api.go.
"""

import os

from lastcall.kube.cri.sandbox.cni.conf import NetworkConfiguration
from lastcall.kube.cri.sandbox.cni.plugin import Plugins
from lastcall.kube.cri.sandbox.cni.rules import (
    Attachment,
    CNIError,
    Result,
    environment,
    is_gone,
    of_plugin,
    parse_result,
    parse_versions,
    previous_for_delete,
    request,
)
from lastcall.kube.cri.sandbox.cni.versions import at_least, choose


class Chain:
    """What `libcni` does for a runtime. Every verb raises CNIError, which names the plugin."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._versions: dict[tuple[str, int], tuple[str, ...]] = {}

    async def version(self, network: NetworkConfiguration) -> str:
        """Choose the version to talk in. Plugins are asked only if the configuration leaves a choice."""
        if len(network.versions) == 1:
            return network.versions[0]
        return choose(network.versions, [await self._supported(plugin["type"]) for plugin in network.plugins])

    async def _supported(self, name: str) -> tuple[str, ...]:
        path = self._plugins.find(name)
        key = path, os.stat(path).st_mtime_ns
        if key not in self._versions:
            try:
                answer = await self._plugins.run(
                    name, environment("VERSION", None, self._plugins.bin_dirs, netns=""), b'{"cniVersion":"1.0.0"}'
                )
                self._versions[key] = parse_versions(answer)
            except CNIError as error:
                raise of_plugin({"type": name}, "VERSION", error) from error
        return self._versions[key]

    async def add(self, attachment: Attachment, lock: int = -1) -> Result:
        """Add, and return the last plugin's result. After an error call `delete`, also for what was not called."""
        result: Result | None = None
        variables = environment("ADD", attachment, self._plugins.bin_dirs, netns=attachment.netns)
        network = attachment.network
        for plugin in network.plugins:
            stdin = request(network, plugin, attachment.version, attachment.capability_args, result)
            try:
                result = parse_result(await self._plugins.run(plugin["type"], variables, stdin, lock))
            except CNIError as error:
                raise of_plugin(plugin, "ADD", error) from error
        return result or {}

    async def delete(self, attachment: Attachment, lock: int = -1) -> None:
        """Delete in reverse order, and no further than the first plugin that fails. "Not found" is not a failure.

        A network namespace that is gone is passed as "".
        """
        netns = attachment.netns if _is_there(attachment.netns) else ""
        variables = environment("DEL", attachment, self._plugins.bin_dirs, netns=netns)
        network, previous = attachment.network, previous_for_delete(attachment)
        for plugin in reversed(network.plugins):
            stdin = request(network, plugin, attachment.version, attachment.capability_args, previous)
            try:
                await self._plugins.run(plugin["type"], variables, stdin, lock)
            except CNIError as error:
                if not is_gone(error) and not (not netns and "no such file or directory" in str(error)):
                    raise of_plugin(plugin, "DEL", error) from error

    async def collect(self, network: NetworkConfiguration, version: str, valid: list[Attachment]) -> None:
        """Collect (GC): the plugins drop what belongs to none of `valid`. All are asked, whatever one says."""
        if network.disable_gc or not at_least(version, "1.1.0"):
            return
        known = [{"containerID": each.container_id, "ifname": each.ifname} for each in valid]
        errors = []
        for plugin in network.plugins:
            stdin = request(network, plugin, version, {}, more={"cni.dev/valid-attachments": known})
            try:
                await self._plugins.run(
                    plugin["type"], environment("GC", None, self._plugins.bin_dirs, netns=""), stdin
                )
            except CNIError as error:
                errors.append(of_plugin(plugin, "GC", error))
        if errors:
            raise CNIError("; ".join(map(str, errors)), errors[0].code)

    async def status(self, network: NetworkConfiguration, version: str) -> None:
        """Check (STATUS) whether the plugins could do an ADD now."""
        for plugin in network.plugins:
            try:
                self._plugins.find(plugin["type"])
                if at_least(version, "1.1.0"):
                    await self._plugins.run(
                        plugin["type"],
                        environment("STATUS", None, self._plugins.bin_dirs, netns=""),
                        request(network, plugin, version, {}),
                    )
            except CNIError as error:
                raise of_plugin(plugin, "STATUS", error) from error


def _is_there(path: str) -> bool:
    """A file that nothing is mounted on any more is not a network namespace."""
    try:
        return os.stat(path).st_dev == os.stat("/proc/self/ns/net").st_dev
    except OSError:
        return False
