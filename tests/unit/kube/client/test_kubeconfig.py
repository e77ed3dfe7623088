"""Reading and writing kubeconfig files."""

import base64
import datetime
import os
import ssl

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lastcall.kube.client.kubeconfig import (
    KubeconfigError,
    client_for,
    kubeconfig_paths,
    load_kubeconfig,
    make_ssl_context,
    render_kubeconfig,
)


def self_signed(name: str) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return cert.public_bytes(serialization.Encoding.PEM), key_pem


CA, CA_KEY = self_signed("ca")


def write(path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_what_is_rendered_is_read_back(tmp_path):
    text = render_kubeconfig("lastcall", "https://127.0.0.1:6443", CA, token="t0", namespace="demo")
    config = load_kubeconfig(write(tmp_path / "config", text))
    assert (config.server, config.token, config.ca_pem, config.namespace) == (
        "https://127.0.0.1:6443",
        "t0",
        CA,
        "demo",
    )


def test_a_client_certificate_is_rendered_read_and_usable_without_touching_a_disk(tmp_path):
    cert, key = self_signed("admin")
    text = render_kubeconfig("lastcall", "https://127.0.0.1:6443", CA, cert_pem=cert, key_pem=key)
    config = load_kubeconfig(write(tmp_path / "config", text))
    assert (config.cert_pem, config.key_pem, config.token) == (cert, key, "")
    open_files = len(os.listdir("/proc/self/fd"))
    context = make_ssl_context(ca_pem=config.ca_pem, cert_pem=config.cert_pem, key_pem=config.key_pem)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert len(os.listdir("/proc/self/fd")) == open_files


def test_a_rendered_file_has_the_fields_kubectl_reads():
    data = yaml.safe_load(render_kubeconfig("c", "https://h:1", CA, token="t"))
    assert data["kind"] == "Config"
    assert data["clusters"][0]["cluster"]["certificate-authority-data"] == base64.b64encode(CA).decode()
    assert data["contexts"] == [{"name": "c", "context": {"cluster": "c", "user": "c"}}]
    assert data["current-context"] == "c"


def test_files_named_by_path_are_relative_to_the_kubeconfig(tmp_path):
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_bytes(CA)
    (tmp_path / "token").write_text("from-file\n")
    text = """
clusters: [{name: c, cluster: {server: "https://h:1", certificate-authority: pki/ca.crt}}]
users: [{name: u, user: {tokenFile: token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
    config = load_kubeconfig(write(tmp_path / "config", text))
    assert (config.ca_pem, config.token) == (CA, "from-file")


def test_of_several_files_the_first_value_wins(tmp_path):
    one = write(tmp_path / "one", "current-context: x\nclusters: [{name: c, cluster: {server: 'https://one:1'}}]\n")
    two = write(
        tmp_path / "two",
        "current-context: y\nclusters: [{name: c, cluster: {server: 'https://two:1'}}]\n"
        "contexts: [{name: x, context: {cluster: c}}]\n",
    )
    missing = str(tmp_path / "missing")
    config = load_kubeconfig(environ={"KUBECONFIG": os.pathsep.join((missing, one, two))})
    assert config.server == "https://one:1"


def test_without_kubeconfig_the_home_directory_is_looked_at():
    assert [str(p) for p in kubeconfig_paths(environ={"HOME": "/home/me"})] == ["/home/me/.kube/config"]


def test_a_context_can_be_chosen(tmp_path):
    text = """
clusters: [{name: a, cluster: {server: "https://a:1"}}, {name: b, cluster: {server: "https://b:1"}}]
contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b, namespace: n}}]
current-context: a
"""
    config = load_kubeconfig(write(tmp_path / "config", text), "b")
    assert (config.server, config.namespace) == ("https://b:1", "n")


CLUSTER = "clusters: [{name: c, cluster: {server: 'https://h:1'}}]\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "is not YAML"),
        ("- a", "must be a mapping"),
        ("clusters: []", "current-context is not set"),
        ("current-context: x", "context 'x' does not exist; there are: none"),
        ("current-context: x\ncontexts: [{name: y, context: {}}]", "there are: y"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", "cluster 'c' does not exist"),
        ("current-context: x\ncontexts: [7]", "an entry that is not a mapping"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
            "clusters[c].cluster.server is '': must be a URL",
        ),
        (
            CLUSTER + "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "users: [{name: u, user: {exec: {command: aws}}}]",
            "users[u].user.exec.apiVersion must be specified",
        ),
        (
            CLUSTER + "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "users: [{name: u, user: {client-certificate-data: YQ==}}]",
            "both client-certificate and client-key",
        ),
        (
            CLUSTER + "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "users: [{name: u, user: {tokenFile: nowhere}}]",
            "/nowhere' cannot be read",
        ),
    ],
)
def test_a_broken_file_is_refused_with_the_field_and_the_reason(tmp_path, text, part):
    with pytest.raises(KubeconfigError) as refused:
        load_kubeconfig(write(tmp_path / "config", text))
    assert part in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(KubeconfigError, match="no kubeconfig found"):
        load_kubeconfig(environ={"KUBECONFIG": str(tmp_path / "none")})
    with pytest.raises(KubeconfigError, match="cannot read kubeconfig"):
        load_kubeconfig(str(tmp_path / "none"))


def test_certificates_that_are_not_pem_are_refused():
    with pytest.raises(KubeconfigError, match="certificate-authority is not a PEM"):
        make_ssl_context(ca_pem=b"nonsense")
    cert, _ = self_signed("a")
    with pytest.raises(KubeconfigError, match="do not fit or are not PEM"):
        make_ssl_context(ca_pem=CA, cert_pem=cert, key_pem=self_signed("b")[1])


def test_a_client_is_made_from_what_was_read(tmp_path):
    text = render_kubeconfig("lastcall", "https://127.0.0.1:6443", CA, token="t0")
    client = client_for(load_kubeconfig(write(tmp_path / "config", text)))
    assert client.server == "https://127.0.0.1:6443"
