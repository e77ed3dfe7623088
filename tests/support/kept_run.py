"""A cluster of `lastcall run --keep`, and its API as an administrator has it."""

import base64
import json
import re
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

import yaml
from pods import pod
from run_command import Lastcall
from waiting import PATIENCE


def has_cgroups(user: str) -> bool:
    """Whether a cluster of this user gets control groups here, as `lastcall doctor` finds it."""
    with Lastcall(["doctor", "--output", "json"], user=user) as command:
        needs = {need["name"]: need for need in json.loads(command.finish(60).out)["needs"]}
    return bool(needs["cgroups"]["status"] == "ok")


class API:
    """GET with the kubeconfig of `run --keep`."""

    def __init__(self, command: Lastcall) -> None:
        line = command.wait_for("The cluster stays up until Ctrl-C").text
        match = re.search(r"--kubeconfig (\S+)", line)
        assert match, line
        config = yaml.safe_load(Path(match[1]).read_text())
        cluster = config["clusters"][0]["cluster"]
        self._server = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._token = config["users"][0]["user"]["token"]

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self._server + path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, context=self._context, timeout=60 * PATIENCE) as answer:
            return json.load(answer)

    def warnings(self, name: str) -> dict[str, str]:
        """Reason → message of the Pod's Warning Events."""
        items = self.get("/api/v1/namespaces/default/events")["items"]
        own = [each for each in items if each["involvedObject"]["name"] == name and each["type"] == "Warning"]
        assert len({each["reason"] for each in own}) == len(own), "each once per Pod"
        return {each["reason"]: each["message"] for each in own}

    def warned(self, name: str, reason: str) -> str:
        for _ in range(1200):
            if reason in (found := self.warnings(name)):
                return found[reason]
            time.sleep(0.05)  # pause of a poll
        raise AssertionError(f"no Event {reason} of {name}: {self.warnings(name)}")

    def terminated(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = {}
        for _ in range(1200):
            status = self.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
            for container in status.get("containerStatuses") or ():
                if "terminated" in container["state"]:
                    ended: dict[str, Any] = container["state"]["terminated"]
                    return ended
            time.sleep(0.05)  # pause of a poll
        raise AssertionError(f"{name} does not end: {status}")

    def running(self, name: str) -> dict[str, Any]:
        """Its status, as soon as its containers are ready."""
        status: dict[str, Any] = {}
        for _ in range(1200):
            status = self.get(f"/api/v1/namespaces/default/pods/{name}")["status"]
            if all(each["ready"] for each in status.get("containerStatuses") or [{"ready": False}]):
                return status
            time.sleep(0.05)  # pause of a poll
        raise AssertionError(f"{name} does not run: {status}")

    def log(self, name: str) -> str:
        path = f"{self._server}/api/v1/namespaces/default/pods/{name}/log"
        request = urllib.request.Request(path, headers={"Authorization": f"Bearer {self._token}"})
        with urllib.request.urlopen(request, context=self._context, timeout=60 * PATIENCE) as answer:
            return str(answer.read(), "utf-8")


def with_container(name: str, script: str, **fields: Any) -> dict[str, Any]:
    manifest = pod(name)
    container = manifest["spec"]["containers"][0]
    container.pop("lifecycle", None)
    container |= {"command": ["sh", "-c", script], **fields}
    manifest["spec"] |= {"restartPolicy": "Never"}
    return manifest


def create(api: API, manifest: dict[str, Any]) -> None:
    body = json.dumps(manifest).encode()
    headers = {"Authorization": f"Bearer {api._token}", "Content-Type": "application/json"}
    url = f"{api._server}/api/v1/namespaces/default/pods"
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, context=api._context, timeout=60 * PATIENCE) as answer:
        assert answer.status == 201
