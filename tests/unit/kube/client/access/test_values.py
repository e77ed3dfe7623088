"""Texts of a kubeconfig that cannot be sent or connected to are errors of the file."""

import os
from pathlib import Path

import pytest

from lastcall.kube.client.access.config import ClientConfig, Impersonation, Overrides
from lastcall.kube.client.access.credentials import Credentials
from lastcall.kube.client.access.errors import KubeconfigError
from lastcall.kube.client.access.pod import pod_config
from lastcall.kube.client.access.proxies import proxy_for
from lastcall.kube.client.access.values import header_problem, server_problem, without_user
from lastcall.kube.client.kubeconfig import load_kubeconfig
from lastcall.world.files import read_regular

KUBECONFIG = """
clusters: [{{name: c, cluster: {{server: "{server}"{cluster}}}}}]
users: [{{name: u, user: {{{user}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def loaded(
    tmp_path: Path, server: str = "http://127.0.0.1:1", cluster: str = "", user: str = "", **asked
) -> ClientConfig:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.format(server=server, cluster=f", {cluster}" if cluster else "", user=user))
    return load_kubeconfig(str(path), overrides=Overrides(**asked))


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("http://127.0.0.1:99999", "its port is not a number from 1 to 65535"),
        ("http://127.0.0.1:0", "its port is not a number from 1 to 65535"),
        ("http://127.0.0.1:x", "its port is not a number from 1 to 65535"),
        ("http://a@b", "user information"),
        ("http://ann:hunter2@b", "user information"),
        ("//x", "no host"),
        ("https://", "no host"),
        ("https://[::1", "Invalid IPv6 URL"),
        ("https://a b", "a blank or a control character"),
        ("https://a\\r\\nb", "a blank or a control character"),
        ("https://a?b=c", "a query or a fragment"),
        ("https://a#b", "a query or a fragment"),
        ("ftp://a", "neither https:// nor http://"),
        ("", "neither https:// nor http://"),
    ],
)
def test_a_server_that_is_no_url_is_an_error_of_the_file(tmp_path: Path, server: str, problem: str) -> None:
    with pytest.raises(KubeconfigError) as error:
        loaded(tmp_path, server)
    text = str(error.value)
    assert text.startswith(f"{tmp_path}/config: clusters[c].cluster.server is ") and problem in text
    assert "must be a URL, https://host:port" in text
    assert "hunter2" not in text and "\n" not in text


@pytest.mark.parametrize("server", ["https://a", "http://a:1", "https://[::1]:6443/k8s/clusters/c-1", "https://a_b.c/"])
def test_good_servers_are_taken(server: str) -> None:
    assert server_problem(server) == ""


def test_a_proxy_with_a_port_out_of_range_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="proxy-url is not a URL: its port"):
        proxy_for("https://a", "http://b:99999", {})


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ('token: "a\\r\\nX-Evil: b"', "users[u].user.token has a line break"),
        ('token: "a\\0b"', "users[u].user.token has a line break"),
        ('as: "root\\r\\nX-Evil: b"', "has a line break"),
        ('as: root, as-groups: ["a\\nb"]', "has a line break"),
        ('as: root, as-uid: "a\\nb"', "has a line break"),
        ('as: root, as-user-extra: {a: ["b\\nc"]}', "has a line break"),
    ],
)
def test_what_would_break_a_header_is_an_error_of_the_file(tmp_path: Path, user: str, field: str) -> None:
    with pytest.raises(KubeconfigError) as error:
        loaded(tmp_path, user=user)
    text = str(error.value)
    assert text.startswith(f"{tmp_path}/config: users[u].user") and field in text
    assert "\n" not in text and ("token" not in user or "X-Evil" not in text), "secrets are not shown"


def test_an_option_that_would_break_a_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="--as"):
        loaded(tmp_path, impersonate=Impersonation(user="a\nb"))


def test_a_token_file_with_a_line_break_inside_is_refused_and_a_last_line_break_is_not(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a\nb")
    with pytest.raises(KubeconfigError, match="tokenFile has a line break"):
        loaded(tmp_path, user="tokenFile: token")
    (tmp_path / "token").write_text("a\n")
    config = loaded(tmp_path, user="tokenFile: token")
    assert config.token == "a"


async def test_a_token_that_is_replaced_by_one_with_a_line_break_stays(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a")
    now = [0.0]
    credentials = Credentials(loaded(tmp_path, user="tokenFile: token"), monotonic=lambda: now[0])
    for content, expected in (("b\r\nX: y", "Bearer a"), ("c", "Bearer c")):
        (tmp_path / "token").write_text(content)
        now[0] += 100
        assert (await credentials.proof()).authorization == expected


@pytest.mark.parametrize("data", ["%%%", "aGVsbG8", "aGVs bG8=", "aGVsbG8=!"])
def test_base64_that_is_not_base64_is_refused_with_the_way_out(tmp_path: Path, data: str) -> None:
    with pytest.raises(KubeconfigError) as error:
        loaded(tmp_path, cluster=f'certificate-authority-data: "{data}"')
    assert "clusters[c].cluster.certificate-authority-data is not base64" in str(error.value)
    assert "base64 -w0 FILE" in str(error.value)


def test_base64_may_have_line_breaks(tmp_path: Path) -> None:
    config = loaded(tmp_path, cluster='certificate-authority-data: "aGVs\\r\\nbG8=\\n"')
    assert config.ca_pem == b"hello"


@pytest.mark.parametrize("name", ["a b", "a\\0b", "a/b"])
def test_a_tls_server_name_that_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(KubeconfigError, match="tls-server-name"):
        loaded(tmp_path, cluster=f'tls-server-name: "{name}"')


@pytest.mark.parametrize(
    ("cluster", "user", "field"),
    [
        ("", "tokenFile: {}", "users[u].user.tokenFile"),
        ("certificate-authority: {}", "", "clusters[c].cluster.certificate-authority"),
        ("", "client-certificate: {0}, client-key: {0}", "users[u].user.client-certificate"),
    ],
)
@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "large"])
def test_files_without_an_end_are_refused_at_once(
    tmp_path: Path, cluster: str, user: str, field: str, kind: str
) -> None:
    path, why = {
        "device": ("/dev/zero", "it is a device"),
        "pipe": (str(tmp_path / "pipe"), "it is a named pipe"),
        "directory": (str(tmp_path), "it is a directory"),
        "large": (str(tmp_path / "large"), "it has more than 1024 KiB"),
    }[kind]
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"a" * ((1 << 20) + 1))
    with pytest.raises(KubeconfigError) as error:
        loaded(tmp_path, cluster=cluster.format(path), user=user.format(path))
    assert field in str(error.value) and path in str(error.value) and why in str(error.value)


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert read_regular(str(tmp_path / "a"), 10) == b"x" * 10
    with pytest.raises(OSError, match="more than 0 KiB"):
        read_regular(str(tmp_path / "a"), 9)


def test_the_variables_of_a_pod_that_make_no_url_are_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "99999"}
    with pytest.raises(KubeconfigError, match="KUBERNETES_SERVICE_PORT"):
        pod_config(Overrides(), environ, tmp_path)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:secret@host/x", "https://***@host/x"),
        ("https://a:b@c@host", "https://***@host"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_passwords_of_urls_are_not_shown(url: str, shown: str) -> None:
    assert without_user(url) == shown


@pytest.mark.parametrize(("text", "good"), [("a b\tc", True), ("é", True), ("a\nb", False), ("\x7f", False)])
def test_which_texts_a_header_may_have(text: str, good: bool) -> None:
    assert (header_problem(text) == "") is good
