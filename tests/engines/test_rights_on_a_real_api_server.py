"""What a real API server refuses: the commands that are proposed give the right that was missing."""

import asyncio
import os
import subprocess

import pytest
from engines.api_server import BINARIES, RealAPIServer, needs

from lastcall.contexts.diagnosis import forbidden_text
from lastcall.kube.api.errors import StatusError
from lastcall.kube.client.access.config import Impersonation, Overrides
from lastcall.kube.client.access.reviews import denied, user_name
from lastcall.kube.client.access.rights import Right, commands_for, missing_right
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300), needs("etcd", "kube-apiserver", "kubectl")]

EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
ACCOUNT = "system:serviceaccount:rights:robot"


def ask(
    kubeconfig: str, method: str, path: str, body: object = None, asked: Impersonation | None = None
) -> StatusError | None:
    """None for an answer that is no refusal."""

    async def send() -> StatusError | None:
        overrides = Overrides(impersonate=asked or Impersonation())
        client = client_for(load_kubeconfig(kubeconfig, overrides=overrides), user_agent="test")
        try:
            await client.request(
                method,
                path,
                body=body,
                content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
            )
            return None
        except StatusError as error:
            return error if error.code == 403 else None
        finally:
            await client.close()

    return asyncio.run(send())


def run(real: RealAPIServer, command: str) -> None:
    """As a reader would who copies it into a shell."""
    environment = {**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}", "KUBECONFIG": real.kubeconfig}
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"{command}: {done.stderr}"


@pytest.fixture(scope="module", autouse=True)
def namespace(real: RealAPIServer) -> None:
    real.kubectl("create", "namespace", "rights")


HERE = "in the namespace rights"
CORE, APPS = "/api/v1/namespaces/rights", "/apis/apps/v1/namespaces/rights"
SLICES = "/apis/discovery.k8s.io/v1/endpointslices"


@pytest.mark.parametrize(
    ("user", "method", "path", "body", "words"),
    [
        ("jane", "GET", f"{CORE}/pods", None, f"list pods {HERE}"),
        ("jane", "GET", f"{CORE}/pods?watch=true&timeoutSeconds=1", None, f"watch pods {HERE}"),
        ("jane", "GET", "/api/v1/pods", None, "list pods in all namespaces"),
        ("jane", "GET", f"{CORE}/pods/web/log", None, f"get pods/log {HERE}"),
        ("jane", "POST", f"{CORE}/pods/web/eviction", EVICTION, f"create pods/eviction {HERE}"),
        ("jane", "GET", SLICES, None, "list endpointslices.discovery.k8s.io in all namespaces"),
        ("jane", "PATCH", f"{APPS}/deployments/web", {}, f"patch deployments.apps web {HERE}"),
        ("jane", "GET", f"{APPS}/deployments/web/scale", None, f"get deployments.apps/scale {HERE}"),
        ("jane", "GET", "/api/v1/nodes/one", None, "get nodes one in all namespaces"),
        ("jane", "GET", "/metrics", None, "get /metrics"),
        ("o'hara@example.com $(id)", "GET", f"{CORE}/events", None, f"list events {HERE}"),
    ],
)
def test_the_proposed_commands_give_exactly_what_was_refused(real, user, method, path, body, words):
    kubeconfig = real.user(user)
    refused = ask(kubeconfig, method, path, body)
    assert refused is not None
    right = missing_right(refused.status)
    assert right is not None and right.words == words and right.user == user
    for command in commands_for([right]):
        run(real, command)
    assert ask(kubeconfig, method, path, body) is None


def test_a_service_account_gets_its_right(real):
    real.kubectl("create", "serviceaccount", "robot", "-n", "rights")
    asked = Impersonation(ACCOUNT, ("system:serviceaccounts", "system:authenticated"))
    path = "/api/v1/namespaces/rights/configmaps"
    refused = ask(real.kubeconfig, "GET", path, None, asked)
    assert refused is not None
    for command in commands_for([missing_right(refused.status)]):
        run(real, command)
    assert ask(real.kubeconfig, "GET", path, None, asked) is None


@pytest.mark.parametrize(
    "asked",
    [
        Impersonation("worker"),
        Impersonation("worker", ("devs", "ops"), "7", (("scopes", "view"),)),
        Impersonation(ACCOUNT),
    ],
    ids=["user", "all", "service account"],
)
def test_a_user_that_may_not_impersonate_gets_that_right(real, asked):
    user = f"boss-{len(asked.groups)}-{len(asked.user)}"
    kubeconfig = real.user(user)
    refused = ask(kubeconfig, "GET", "/version", None, asked)
    assert refused is not None
    told = forbidden_text(refused, refused.message, asked)
    assert f"missing permission of {user}: impersonate" in told
    for command in told.splitlines()[2:]:
        run(real, command)
    assert ask(kubeconfig, "GET", "/version", None, asked) is None


def test_rights_are_asked_for_before_and_given_together(real):
    kubeconfig = real.user("early")
    wanted = [Right("", verb, kind, "", "rights") for kind in ("pods", "events") for verb in ("list", "watch")]

    async def lacks() -> tuple[str, list[Right]]:
        client = client_for(load_kubeconfig(kubeconfig), user_agent="test")
        try:
            return await user_name(client.request), await denied(
                client.request, [*wanted, Right("", "get", path="/version")]
            )
        finally:
            await client.close()

    name, missing = asyncio.run(lacks())
    assert name == "early"
    assert [right.user for right in missing] == ["early"] * 4
    commands = commands_for(missing)
    assert len(commands) == 2
    for command in commands:
        run(real, command)
    assert asyncio.run(lacks())[1] == []
