"""The same kubeconfigs to the real kubectl and to ours, on a real API server: the same user, or the same refusal."""

import asyncio
import base64
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from engines.api_server import RealAPIServer, needs
from engines.proxies import proxy

from lastcall.cli.terminal import note
from lastcall.contexts.connection import choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.errors import LastcallError, UserError
from lastcall.kube.api.resources import NAMESPACES
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.client.access.config import Impersonation
from lastcall.kube.client.kubeconfig import client_for, load_kubeconfig

pytestmark = [pytest.mark.timeout(300), needs("etcd", "kube-apiserver", "kubectl")]

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
PLUGIN = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "asked"), "a") as file:
    file.write(json.dumps({"args": sys.argv[1:], "env": os.environ.get("CLOUD"), **info}) + "\\n")
with open(os.path.join(here, "status.json")) as file:
    print(json.dumps({"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": json.load(file)}))
"""


class Case:
    """A folder with a kubeconfig, asked by both."""

    def __init__(self, real: RealAPIServer, folder: Path) -> None:
        self.real, self.folder = real, folder
        self.cluster: dict[str, Any] = {"server": real.url, "certificate-authority-data": b64(real.ca.certificate_pem)}
        self.user: dict[str, Any] = {}

    def write(self) -> str:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": self.cluster}],
            "users": [{"name": "u", "user": self.user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = self.folder / "config"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    def both(self, *options: str, asked: Impersonation | None = None) -> dict[str, Any]:
        """The user that the API server sees, which has to be the same for both."""
        kubeconfig = self.write()
        done = self.real.run_kubectl(*options, "auth", "whoami", "-o", "json", kubeconfig=kubeconfig)
        assert done.returncode == 0, done.stderr
        theirs = json.loads(done.stdout)["status"]["userInfo"]
        ours = asyncio.run(whoami(ContextOptions(kubeconfig, impersonate=asked or Impersonation())))
        for each in (theirs, ours):
            each.get("extra", {}).pop("authentication.kubernetes.io/credential-id", None)
        assert ours == theirs
        return ours

    def plugin(self, status: dict[str, Any], **more: Any) -> None:
        (self.folder / "plugin.py").write_text(PLUGIN)
        (self.folder / "status.json").write_text(json.dumps(status))
        self.user["exec"] = {
            "apiVersion": V1,
            "interactiveMode": "Never",
            "command": sys.executable,
            "args": [str(self.folder / "plugin.py"), "a b", "$(id)"],
            "env": [{"name": "CLOUD", "value": "nine"}],
            **more,
        }

    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "asked").read_text().splitlines()]

    def token(self, name: str) -> str:
        self.real.kubectl("create", "serviceaccount", name, check=False)
        return self.real.kubectl("create", "token", name).strip()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def whoami(options: ContextOptions) -> dict[str, Any]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    async with connected(choose(options), agent="test", warn=note) as cluster:
        answer = await cluster.client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body)
        return json.loads(answer)["status"]["userInfo"]


@pytest.fixture
def case(real: RealAPIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return Case(real, tmp_path)


def test_a_certificate_in_data(case):
    cert, key = case.real.issue("jane", "devs", "ops")
    case.user = {"client-certificate-data": b64(cert), "client-key-data": b64(key)}
    told = case.both()
    assert (told["username"], told["groups"]) == ("jane", ["devs", "ops", "system:authenticated"])


def test_certificates_in_files_relative_to_the_kubeconfig(case):
    cert, key = case.real.issue("jane")
    for name, content in (("me.crt", cert), ("me.key", key), ("ca.crt", case.real.ca.certificate_pem)):
        (case.folder / name).write_bytes(content)
    case.cluster = {"server": case.real.url, "certificate-authority": "ca.crt"}
    case.user = {"client-certificate": "me.crt", "client-key": "me.key"}
    assert case.both()["username"] == "jane"


def test_a_token_and_a_token_in_a_file(case):
    token = case.token("one")
    case.user = {"token": token}
    assert case.both()["username"] == "system:serviceaccount:default:one"
    (case.folder / "token").write_text(f"{token}\n")
    case.user = {"tokenFile": "token"}
    assert case.both()["username"] == "system:serviceaccount:default:one"
    # The file is before the token, which need not be good then.
    case.user = {"token": "nonsense", "tokenFile": "token"}
    assert case.both()["username"] == "system:serviceaccount:default:one"


@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_a_plugin_that_gives_a_token(case, version):
    case.plugin({"token": case.token("two")}, apiVersion=version)
    assert case.both()["username"] == "system:serviceaccount:default:two"
    theirs, ours = case.asked()
    assert ours == theirs
    assert ours["args"] == ["a b", "$(id)"] and ours["env"] == "nine" and ours["spec"] == {"interactive": False}


def test_a_plugin_that_gives_a_certificate_and_is_told_the_cluster(case):
    cert, key = case.real.issue("plugged")
    case.cluster["extensions"] = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    case.cluster["tls-server-name"] = "localhost"
    case.plugin({"clientCertificateData": cert.decode(), "clientKeyData": key.decode()}, provideClusterInfo=True)
    assert case.both()["username"] == "plugged"
    theirs, ours = case.asked()
    assert ours == theirs
    assert ours["spec"]["cluster"]["config"] == {"audience": "x"}


def test_impersonation_by_the_file_and_by_options(case):
    cert, key = case.real.issue("root", "system:masters")
    case.user = {
        "client-certificate-data": b64(cert),
        "client-key-data": b64(key),
        "as": "jane",
        "as-groups": ["a", "b"],
        "as-uid": "7",
        "as-user-extra": {"scopes": ["view", "edit"], "example.com/Über": ["x"]},
    }
    told = case.both()
    assert (told["username"], told["uid"], told["groups"]) == ("jane", "7", ["a", "b", "system:authenticated"])
    options = ("--as=other", "--as-group=c", "--as-uid=8", "--as-user-extra=scopes=all")
    asked = Impersonation("other", ("c",), "8", (("scopes", "all"),))
    case.user = {key: value for key, value in case.user.items() if not key.startswith("as")}
    assert case.both(*options, asked=asked)["username"] == "other"


def test_a_server_that_is_not_checked_and_a_name_that_is(case):
    case.user = {"token": case.token("three")}
    case.cluster = {"server": case.real.url, "insecure-skip-tls-verify": True}
    assert case.both()["username"].endswith(":three")
    case.cluster = {
        "server": case.real.url,
        "certificate-authority-data": b64(case.real.ca.certificate_pem),
        "tls-server-name": "localhost",
        "disable-compression": True,
    }
    assert case.both()["username"].endswith(":three")


@pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
def test_a_proxy(case, scheme):
    case.user = {"token": case.token("four")}
    context = None
    if scheme == "https":
        cert, key = case.real.ca.issue_server(["127.0.0.1"])
        (case.folder / "proxy.pem").write_bytes(cert + key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(case.folder / "proxy.pem")
    with proxy(context) as between:
        case.cluster["proxy-url"] = f"{scheme}://127.0.0.1:{between.port}"
        assert case.both()["username"].endswith(":four")
        assert set(between.asked) == {f"127.0.0.1:{case.real.port}"}
        assert len(between.asked) >= 2


def test_a_plugin_whose_token_was_revoked_is_asked_again_at_once(case):
    token = case.token("five")
    case.plugin({"token": "revoked"})

    async def look() -> tuple[str, str]:
        client = client_for(load_kubeconfig(case.write()))
        try:
            with pytest.raises(Exception, match="Unauthorized"):
                await client.list(NAMESPACES)
            (case.folder / "status.json").write_text(json.dumps({"token": token}))
            client._credentials._plugin_rests = 0.0  # ten seconds later
            answer = await client.request("GET", "/version")
            return json.loads(answer)["gitVersion"], "ok"
        finally:
            await client.close()

    assert asyncio.run(look())[1] == "ok"


def test_a_token_file_that_was_replaced_is_read_after_a_401(case):
    (case.folder / "token").write_text("old")
    case.user = {"tokenFile": "token"}

    async def look() -> bytes:
        client = client_for(load_kubeconfig(case.write()))
        try:
            (case.folder / "token").write_text(case.token("six"))
            return await client.request("GET", "/version")
        finally:
            await client.close()

    assert b"gitVersion" in asyncio.run(look())


def test_who_is_not_accepted_is_told_why(case):
    case.user = {"token": "nonsense"}
    with pytest.raises(
        UserError, match=r"You must be logged in to the server \(Unauthorized\): it does not accept a token"
    ):
        asyncio.run(whoami(ContextOptions(case.write())))
    assert "You must be logged in to the server" in case.real.run_kubectl("get", "ns", kubeconfig=case.write()).stderr


def test_a_server_of_another_authority_and_one_with_another_name_are_told_apart(case):
    case.user = {"token": "x"}
    case.cluster["certificate-authority-data"] = b64(ClusterCA.create().certificate_pem)
    with pytest.raises(LastcallError, match=r"is signed by an authority .*does not have"):
        asyncio.run(whoami(ContextOptions(case.write())))
    case.cluster["certificate-authority-data"] = b64(case.real.ca.certificate_pem)
    case.cluster["tls-server-name"] = "other.example.com"
    with pytest.raises(LastcallError, match=r"valid for 127.0.0.1, localhost, not for other\.example\.com"):
        asyncio.run(whoami(ContextOptions(case.write())))


def users(user: str, cluster: str = "{server: 'https://127.0.0.1:1'}") -> str:
    return (
        f"clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )


def runs(more: str) -> str:
    return users(f"{{exec: {{{more}}}}}")


REFUSED = {
    "gcp": (users("{auth-provider: {name: gcp}}"), "The gcp auth plugin has been removed"),
    "azure": (users("{auth-provider: {name: azure}}"), "The azure auth plugin has been removed"),
    "other provider": (users("{auth-provider: {name: other}}"), "no Auth Provider found for name"),
    "token is a number": (users("{token: 123}"), "number"),
    "two ways": (users("{token: a, username: b, password: c}"), "more than one authentication method found"),
    "no apiVersion": (runs("command: x"), "apiVersion must be specified"),
    "no mode": (runs(f"command: x, apiVersion: {V1}"), "interactiveMode"),
    "unknown mode": (runs(f"command: x, apiVersion: {V1}, interactiveMode: Sometimes"), "Sometimes"),
    "old version": (runs("command: x, apiVersion: client.authentication.k8s.io/v1alpha1"), "v1alpha1"),
    "not installed": (runs(f"command: none-such, apiVersion: {V1BETA1}, installHint: 'apt it'"), "apt it"),
    "terminal": (runs(f"command: x, apiVersion: {V1}, interactiveMode: Always"), "standard input is not a terminal"),
    "fails": (runs(f"command: 'false', apiVersion: {V1}, interactiveMode: Never"), "failed with exit code 1"),
    "nonsense": (runs(f"command: echo, args: [hi], apiVersion: {V1}, interactiveMode: Never"), "decoding stdout"),
    "groups alone": (users("{as-groups: [a]}"), "without impersonating a user"),
    "proxy scheme": (
        users("{token: a}", "{server: 'https://127.0.0.1:1', proxy-url: 'ftp://h'}"),
        "unsupported scheme",
    ),
    "no CA file": (users("{token: a}", "{server: 'https://127.0.0.1:1', certificate-authority: none}"), "none"),
    "half a certificate": (users("{client-certificate-data: YQ==}"), "client-key"),
    "no token file": (users("{tokenFile: nowhere}"), "nowhere"),
    "not YAML": ("{", "line 1"),
    "a list": ("- a", None),
    "another kind": ("apiVersion: v1\nkind: Pod\n", "Pod"),
    "unreachable": (users("{token: a}"), "was refused - did you specify the right host or port?"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_kubectl_refuses_is_refused_here(name, real, tmp_path):
    text, part = REFUSED[name]
    path = tmp_path / "config"
    path.write_text(text)
    theirs = real.run_kubectl("get", "--raw", "/version", "--request-timeout=5s", kubeconfig=str(path))
    assert theirs.returncode == 1
    with pytest.raises(LastcallError) as ours:
        asyncio.run(whoami(ContextOptions(str(path))))
    if part is not None:
        assert part in str(ours.value)
        assert part in theirs.stderr


def test_several_files_are_merged_as_kubectl_merges_them(real, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    admin = yaml.safe_load(Path(real.kubeconfig).read_text())
    one.write_text("contexts: [{name: real, context: {cluster: real, user: real, namespace: one}}]\n")
    admin["contexts"][0]["context"]["namespace"] = "two"
    two.write_text(yaml.safe_dump(admin))
    listed = os.pathsep.join(("", str(tmp_path / "none"), str(one), str(two), str(one)))
    view = real.run_kubectl_with({"KUBECONFIG": listed}, "config", "view", "--minify", "-o", "json")
    theirs = json.loads(view.stdout)["contexts"][0]["context"]["namespace"]
    chosen = choose(ContextOptions(), {"KUBECONFIG": listed})
    assert (chosen.namespace, chosen.server, chosen.context) == (theirs, real.url, "real")
